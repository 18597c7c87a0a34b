package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
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
