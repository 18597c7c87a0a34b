package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestConnectionsGoToTheAddressesInTurn(t *testing.T) {
	// Loopback has as many addresses as one likes; nothing listens at the third.
	port := ""
	for _, address := range []string{"127.0.0.2", "127.0.0.3"} {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		if port == "" {
			t.Fatal("no port")
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s%s", address, body)
			})}}
		server.Start()
		t.Cleanup(server.Close)
	}
	addresses := []string{"127.0.0.4", "127.0.0.3", "127.0.0.2"}
	b := &Balancer{Name: "workers", Port: port, Lookup: func(_ context.Context, name string) ([]string, error) {
		if name != "workers" {
			return nil, fmt.Errorf("asked for %q", name)
		}
		return addresses, nil
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { _ = b.Serve(listener) }()

	ask := func(client *http.Client) string {
		response, err := client.PostForm("http://"+listener.Addr().String(), url.Values{"x": {"1"}})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return string(body)
	}
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	seen := map[string]int{}
	for range 6 {
		seen[ask(fresh)]++
	}
	// The turn of the third falls to that after it.
	if seen["127.0.0.2x=1"] != 4 || seen["127.0.0.3x=1"] != 2 {
		t.Errorf("by fresh connections: %v", seen)
	}
	kept := &http.Client{Transport: &http.Transport{}}
	if first := ask(kept); ask(kept) != first || ask(kept) != first {
		t.Error("a kept connection went to another address")
	}
}

func TestWhileLookupsFailTheAddressesBeforeAreUsed(t *testing.T) {
	var fails error
	lookups := 0
	b := &Balancer{Name: "workers", Lookup: func(ctx context.Context, _ string) ([]string, error) {
		lookups++
		if _, ends := ctx.Deadline(); !ends {
			t.Fatal("a lookup may take for ever")
		}
		return []string{"127.0.0.2"}, fails
	}}
	b.next()
	fails = errors.New("server misbehaving")
	b.asked = time.Time{}
	for range 1000 {
		if found := b.next(); !slices.Equal(found, []string{"127.0.0.2"}) {
			t.Fatalf("%v", found)
		}
	}
	if lookups > 100 {
		t.Errorf("%d lookups for 1,000 connections", lookups)
	}
}

// tightListener is a listener for whose first connection the process has no descriptor.
type tightListener struct {
	net.Listener
	hasFailed bool
}

func (l *tightListener) Accept() (net.Conn, error) {
	if !l.hasFailed {
		l.hasFailed = true
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAConnectionThatCannotBeTakenEndsNothing(t *testing.T) {
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	t.Cleanup(worker.Close)
	host, port, _ := net.SplitHostPort(worker.Listener.Addr().String())
	b := &Balancer{Name: "workers", Port: port, Lookup: func(context.Context, string) ([]string, error) {
		return []string{host}, nil
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(&tightListener{Listener: listener}) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	_ = listener.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
