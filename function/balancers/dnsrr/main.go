// Command dnsrr passes each connection on to one of the addresses that a name has, in turn: what a client does of a Docker
// Swarm service whose endpoint mode is dnsrr. Where an address refuses, the next one is tried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Replicas come and go, and to ask Docker for each connection would be a part of the response time.
const (
	knownFor      = time.Second
	lookupTimeout = 2 * time.Second
	dialTimeout   = 5 * time.Second
	// After no connection could be taken, as without a descriptor for it: some of those that are open end meanwhile.
	acceptPause = 100 * time.Millisecond
)

// Balancer takes the addresses of a name in turn.
type Balancer struct {
	Name, Port string
	Lookup     func(ctx context.Context, name string) ([]string, error)

	mu        sync.Mutex
	addresses []string
	asked     time.Time
	turn      int
}

// next returns the name's addresses, that whose turn it is first. Where the name is not known any more, as while Docker is
// busy, the addresses before stay: as long as any others, or each connection would wait for a lookup of its own.
func (b *Balancer) next() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.asked) > knownFor {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		defer cancel()
		if found, err := b.Lookup(ctx, b.Name); err == nil && len(found) > 0 {
			slices.Sort(found)
			b.addresses = found
		} else {
			log.Printf("%s: no address: %v", b.Name, err)
		}
		if len(b.addresses) == 0 {
			return nil
		}
		b.asked = time.Now()
	}
	first := b.turn % len(b.addresses)
	b.turn++
	return slices.Concat(b.addresses[first:], b.addresses[:first])
}

// serve passes a connection on, both ways, until each side has said all.
func (b *Balancer) serve(client net.Conn) {
	defer client.Close()
	for _, address := range b.next() {
		worker, err := net.DialTimeout("tcp", net.JoinHostPort(address, b.Port), dialTimeout)
		if err != nil {
			continue
		}
		defer worker.Close()
		var ways sync.WaitGroup
		ways.Go(func() { pass(worker, client) })
		ways.Go(func() { pass(client, worker) })
		ways.Wait()
		return
	}
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// Serve takes connections until the listener is closed.
func (b *Balancer) Serve(listener net.Listener) error {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			log.Printf("no connection was taken: %v", err)
			time.Sleep(acceptPause)
			continue
		}
		go b.serve(client)
	}
}

func main() {
	listen := flag.String("listen", ":8080", "where to listen")
	name := flag.String("name", "", "the name whose addresses are used")
	port := flag.String("port", "8080", "the port there")
	flag.Parse()
	if *name == "" {
		fmt.Fprintln(os.Stderr, "dnsrr: -name is missing")
		os.Exit(2)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	balancer := &Balancer{Name: *name, Port: *port, Lookup: net.DefaultResolver.LookupHost}
	log.Fatal(balancer.Serve(listener))
}
