package main

import (
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// output takes what a server logs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

// fuzzed is a request that is nearly one: a method, a path, headers and a body drawn from what could confuse, with bytes
// changed and the end cut off now and then.
func fuzzed(r *rand.Rand) []byte {
	pick := func(words ...string) string { return words[r.Intn(len(words))] }
	path := pick("/system/functions", "/system/function/echo", "/system/scale-function/echo", "/system/secrets",
		"/system/logs?name=echo&tail=-1", "/system/logs", "/system/replicas?function=%00", "/system/namespaces", "/function/echo",
		"/function/echo/unready/../x", "/function/", "/function/"+strings.Repeat("a", 500), "/metrics", "/healthz", "//", "*")
	body := pick("", "{", "[]", "null", `{"service": 1}`, `{"service": "../../x", "image": "echo"}`,
		`{"service": "b", "image": "crash"}`, `{"functionName": "nope"}`, `{"replicas": -1}`, `{"replicas": 1e30}`,
		`{"replicas": 18446744073709551615}`, `{"replicas": 1}`, `{"name": "../x", "value": "y"}`, `{"name": "x", "value": "y"}`,
		strings.Repeat("[", 5000), "\x00\xff")
	method := pick("POST", "GET", "PUT", "DELETE", "HEAD")
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", method, path, len(body))
	for range r.Intn(4) {
		request += pick("Upgrade", "Connection", "Transfer-Encoding", "Expect", "Content-Length", "X-Worker", "X-Forwarded-For", "") +
			": " + pick("websocket", "Upgrade", "chunked", "100-continue", "-1", "=1+1", "", strings.Repeat("b", 3000)) + "\r\n"
	}
	text := []byte(request + "\r\n" + body)
	for range r.Intn(3) {
		text[r.Intn(len(text))] = byte(r.Intn(256))
	}
	if r.Intn(4) == 0 {
		text = text[:r.Intn(len(text))]
	}
	return text
}

func memory() int64 {
	var state runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&state)
	return int64(state.HeapAlloc)
}

func TestTheProviderOutlivesEveryRequestWithItsMemory(t *testing.T) {
	before := log.Writer()
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(before) })
	g, _ := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	handler, err := routes(config{upstream: time.Second}, api{registry: g, secrets: g.secrets}, newProxy(g, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	said := &output{}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(said, "", 0)
	server.Start()
	defer server.Close()
	r := rand.New(rand.NewSource(5))
	var settled int64
	for n := range 2000 {
		if n == 200 {
			settled = memory()
		}
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = connection.Write(fuzzed(r))
		_ = connection.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, connection)
		_ = connection.Close()
	}
	if grown := memory() - settled; grown > 20<<20 {
		t.Errorf("%d bytes more than after the first requests", grown)
	}
	if text := said.text.String(); strings.Contains(text, "panic") {
		t.Error(text)
	}
	if status, answer, _ := post(t, server.URL+"/function/echo", "still"); status != 200 || answer != "still" {
		t.Errorf("%d %q", status, answer)
	}
	if n := f.counts().inFlight; n != 0 {
		t.Errorf("%d requests are under way for ever", n)
	}
}
