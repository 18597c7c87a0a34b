// Command dnsrr passes each connection on to one of the addresses that a name has, in turn: what a client does of a Docker
// Swarm service whose endpoint mode is dnsrr. Where an address refuses, the next one is tried.
package main

import (
	"context"
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
	knownFor    = time.Second
	dialTimeout = 5 * time.Second
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
// busy, the addresses before stay.
func (b *Balancer) next() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.asked) > knownFor {
		if found, err := b.Lookup(context.Background(), b.Name); err == nil && len(found) > 0 {
			slices.Sort(found)
			b.addresses, b.asked = found, time.Now()
		} else {
			log.Printf("%s: no address: %v", b.Name, err)
		}
	}
	if len(b.addresses) == 0 {
		return nil
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
		if err != nil {
			return err
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
