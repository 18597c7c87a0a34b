package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthyWorkersInTurn(t *testing.T) {
	up := func(status int) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		return server
	}
	one, two, sick := up(200), up(200), up(503)
	var addresses []string
	for _, server := range []*httptest.Server{one, two, sick} {
		addresses = append(addresses, strings.TrimPrefix(server.URL, "http://"))
	}
	b := New(append(addresses, "127.0.0.1:1"))
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		b.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/a/b?c=d", strings.NewReader("body")))
		return w
	}
	if w := ask(); w.Code != 503 {
		t.Errorf("before the first check: %d", w.Code)
	}
	b.check(http.DefaultClient, "/_/health")
	for n, want := range []string{one.URL, two.URL, one.URL, two.URL} {
		if w := ask(); w.Code != 307 || w.Header().Get("Location") != want+"/a/b?c=d" {
			t.Errorf("request %d: %d to %s, want %s", n, w.Code, w.Header().Get("Location"), want)
		}
	}
	if b.workers[0].Requests != 2 || b.workers[2].Requests != 0 || b.workers[3].Healthy {
		t.Errorf("%+v", *b.workers[0])
	}
}
