// Command redirect is a balancer that answers each request by where to go: 307 to one of the workers in turn. The
// caller sends its request a second time, straight to that worker.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// A worker that answers late is busy, not dead: one that is refuses at once.
const checkTimeout = 5 * time.Second

// Worker is one of the servers that requests are sent to.
type Worker struct {
	Address  string `json:"address"`
	Healthy  bool   `json:"healthy"`
	Requests int    `json:"requests"`
}

// Balancer takes its workers in turn, those that are healthy.
type Balancer struct {
	mu      sync.Mutex
	workers []*Worker
	turn    int
}

// New makes a balancer of workers by their host:port; none is healthy before its first check.
func New(addresses []string) *Balancer {
	b := &Balancer{}
	for _, address := range addresses {
		b.workers = append(b.workers, &Worker{Address: address})
	}
	return b
}

func (b *Balancer) next() *Worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.workers {
		worker := b.workers[b.turn%len(b.workers)]
		b.turn++
		if worker.Healthy {
			worker.Requests++
			return worker
		}
	}
	return nil
}

func (b *Balancer) redirect(w http.ResponseWriter, r *http.Request) {
	worker := b.next()
	if worker == nil {
		http.Error(w, "no worker is healthy", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("X-Worker", worker.Address)
	w.Header().Set("Location", "http://"+worker.Address+r.URL.RequestURI())
	// Not 302: the caller is to send method and body again.
	w.WriteHeader(http.StatusTemporaryRedirect)
}

func (b *Balancer) status(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(b.workers)
}

// check asks each worker for its health.
func (b *Balancer) check(client *http.Client, path string) {
	var checks sync.WaitGroup
	for _, worker := range b.workers {
		checks.Go(func() {
			response, err := client.Get("http://" + worker.Address + path)
			if err == nil {
				_ = response.Body.Close()
			}
			b.mu.Lock()
			worker.Healthy = err == nil && response.StatusCode == http.StatusOK
			b.mu.Unlock()
		})
	}
	checks.Wait()
}

// Handler serves the redirects, and the workers' state under /_/status.
func (b *Balancer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_/status", b.status)
	mux.HandleFunc("/", b.redirect)
	return mux
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8091", "where to listen")
	workers := flag.String("workers", "", "the workers as host:port, separated by commas")
	health := flag.String("health", "/_/health", "path that a healthy worker answers by 200")
	interval := flag.Duration("interval", time.Second/2, "time between two health checks")
	flag.Parse()
	if *workers == "" {
		fmt.Fprintln(os.Stderr, "redirect: -workers is missing")
		os.Exit(2)
	}
	b := New(strings.Split(*workers, ","))
	client := &http.Client{Timeout: checkTimeout}
	b.check(client, *health)
	go func() {
		for range time.Tick(*interval) {
			b.check(client, *health)
		}
	}()
	server := &http.Server{Addr: *listen, Handler: b.Handler(), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
