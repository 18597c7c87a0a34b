package shell

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// echo waits where its body says "wait" and refuses "bad".
func echo(ctx context.Context, body []byte) ([]byte, error) {
	switch string(body) {
	case "bad":
		return nil, errors.New("bad input")
	case "wait":
		<-ctx.Done()
	}
	return body, nil
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	response, err := http.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func TestAnswers(t *testing.T) {
	server := httptest.NewServer(Mux(echo, 0, time.Minute))
	defer server.Close()
	for body, want := range map[string]int{"hello": 200, "": 200, "bad": 400, strings.Repeat("x", maxBodyBytes+1): 413} {
		if status, answer := post(t, server.URL, body); status != want || status == 200 && answer != body {
			t.Errorf("%.10q: %d %.40q, want %d", body, status, answer, want)
		}
	}
}

func TestLongerThanExecTimeoutGets504(t *testing.T) {
	server := httptest.NewServer(Mux(echo, 0, time.Millisecond))
	defer server.Close()
	if status, answer := post(t, server.URL, "wait"); status != 504 {
		t.Errorf("%d %.40q", status, answer)
	}
}

func TestABadExecTimeoutIsRefused(t *testing.T) {
	// A function that is not refused fails at its port.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	t.Setenv("host", "127.0.0.1")
	for _, text := range []string{"0s", "-1s", "25"} {
		t.Setenv("exec_timeout", text)
		if err := serve(echo, port, nil); err == nil || !strings.Contains(err.Error(), "exec_timeout=") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMoreThanMaxInflightGets429(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	held := func(_ context.Context, body []byte) ([]byte, error) {
		close(started)
		<-release
		return body, nil
	}
	server := httptest.NewServer(Mux(held, 1, time.Minute))
	defer server.Close()
	first := make(chan int)
	go func() {
		status, _ := post(t, server.URL, "first")
		first <- status
	}()
	<-started
	if status, _ := post(t, server.URL, "second"); status != 429 {
		t.Errorf("the second: %d", status)
	}
	if response, err := http.Get(server.URL + "/_/health"); err != nil || response.StatusCode != 200 {
		t.Errorf("health of a busy function: %v %v", response, err)
	}
	close(release)
	if status := <-first; status != 200 {
		t.Errorf("the first: %d", status)
	}
}

func TestWhoHasAnswered(t *testing.T) {
	server := httptest.NewServer(telling("pod-1", Mux(func(_ context.Context, body []byte) ([]byte, error) { return body, nil }, 0, time.Minute)))
	defer server.Close()
	response, err := http.Post(server.URL, "", strings.NewReader("x"))
	if err != nil || response.StatusCode != 200 || response.Header.Get("X-Worker") != "pod-1" {
		t.Errorf("%v %v", response, err)
	}
}
