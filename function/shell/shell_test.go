package shell

import (
	"context"
	"errors"
	"io"
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
	server := httptest.NewServer(Mux(echo, 0, 50*time.Millisecond))
	defer server.Close()
	for body, want := range map[string]int{"hello": 200, "": 200, "bad": 400, "wait": 504, strings.Repeat("x", maxBodyBytes+1): 413} {
		if status, answer := post(t, server.URL, body); status != want || status == 200 && answer != body {
			t.Errorf("%.10q: %d %.40q, want %d", body, status, answer, want)
		}
	}
}

func TestMoreThanMaxInflightGets429(t *testing.T) {
	server := httptest.NewServer(Mux(echo, 1, time.Second))
	defer server.Close()
	first := make(chan int)
	go func() {
		status, _ := post(t, server.URL, "wait")
		first <- status
	}()
	for deadline := time.Now().Add(900 * time.Millisecond); ; {
		if status, _ := post(t, server.URL, "hello"); status == 429 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a second request was never refused")
		}
	}
	if response, err := http.Get(server.URL + "/_/health"); err != nil || response.StatusCode != 200 {
		t.Errorf("health of a busy function: %v %v", response, err)
	}
	if status := <-first; status != 504 {
		t.Errorf("the first: %d", status)
	}
}
