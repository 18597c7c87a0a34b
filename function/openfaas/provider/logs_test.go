package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/logs"
)

func TestAFunctionsLogHasALimit(t *testing.T) {
	s := newLogStore(t.TempDir())
	line := []byte(strings.Repeat("x", 1<<20))
	for range 3 * fileBytes >> 20 {
		_, _ = s.writer("f", "f-1").Write(line)
	}
	bytes := int64(0)
	entries, _ := os.ReadDir(s.dir)
	for _, entry := range entries {
		state, _ := entry.Info()
		bytes += state.Size()
	}
	if len(entries) != 2 || bytes > 2*(fileBytes+2<<20) {
		t.Errorf("%d bytes in %v", bytes, entries)
	}
}

func TestLogs(t *testing.T) {
	s := newLogStore(t.TempDir())
	_, _ = s.writer("f", "f-1").Write([]byte("first"))
	_, _ = s.writer("g", "g-1").Write([]byte("of another"))
	_, _ = s.writer("f", "f-2").Write([]byte("second"))
	if got := s.tail("f", "f-1", 5); got != "  first" {
		t.Errorf("tail: %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	lines, err := s.Query(ctx, logs.Request{Name: "f", Tail: 1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	if m := <-lines; m.Text != "second" {
		t.Errorf("kept: %q", m.Text)
	}
	_, _ = s.writer("f", "f-2").Write([]byte("third"))
	if m := <-lines; m.Text != "third" {
		t.Errorf("followed: %q", m.Text)
	}
}
