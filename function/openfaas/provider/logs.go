package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/openfaas/faas-provider/logs"
)

const (
	// keptLines is how many lines of each function are at hand; more of them are in its file.
	keptLines = 2000
	// fileBytes is the size at which a function's file is set aside, in place of the one set aside before.
	fileBytes = 16 << 20
)

// logStore keeps what replicas print.
type logStore struct {
	dir string

	mu        sync.Mutex
	lines     map[string][]logs.Message
	followers map[chan logs.Message]string
	files     map[string]*os.File
}

func newLogStore(dir string) *logStore {
	return &logStore{dir: dir, lines: map[string][]logs.Message{}, followers: map[chan logs.Message]string{}, files: map[string]*os.File{}}
}

type logWriter struct {
	store              *logStore
	function, instance string
}

// writer takes the lines of a replica, one a Write.
func (s *logStore) writer(function, instance string) io.Writer {
	return logWriter{s, function, instance}
}

func (w logWriter) Write(line []byte) (int, error) {
	message := logs.Message{Name: w.function, Instance: w.instance, Timestamp: time.Now(), Text: string(line)}
	w.store.add(message)
	return len(line), nil
}

func (s *logStore) add(m logs.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := append(s.lines[m.Name], m)
	if len(kept) > 2*keptLines {
		kept = append([]logs.Message(nil), kept[len(kept)-keptLines:]...)
	}
	s.lines[m.Name] = kept
	for follower, function := range s.followers {
		if function == m.Name {
			select {
			case follower <- m:
			default: // A reader that does not keep up misses lines; the function must not wait for it.
			}
		}
	}
	s.toFile(m)
}

func (s *logStore) toFile(m logs.Message) {
	file := s.files[m.Name]
	if file == nil {
		var err error
		if os.MkdirAll(s.dir, 0o700) != nil {
			return
		}
		file, err = os.OpenFile(filepath.Join(s.dir, m.Name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return
		}
		s.files[m.Name] = file
	}
	if state, err := file.Stat(); err == nil && state.Size() > fileBytes {
		_ = file.Close()
		delete(s.files, m.Name)
		_ = os.Rename(file.Name(), file.Name()+".1")
		s.toFile(m)
		return
	}
	_, _ = fmt.Fprintf(file, "%s %s %s\n", m.Timestamp.UTC().Format(time.RFC3339Nano), m.Instance, m.Text)
}

// tail is the last lines of one replica, as text.
func (s *logStore) tail(function, instance string, n int) string {
	var last []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.matching(logs.Request{Name: function, Instance: instance, Tail: n}) {
		last = append(last, "  "+m.Text)
	}
	if last == nil {
		return "  (none)"
	}
	return strings.Join(last, "\n")
}

func (s *logStore) matching(r logs.Request) []logs.Message {
	var found []logs.Message
	for _, m := range s.lines[r.Name] {
		if (r.Instance == "" || r.Instance == m.Instance) && (r.Since == nil || !m.Timestamp.Before(*r.Since)) {
			found = append(found, m)
		}
	}
	if r.Tail > 0 && len(found) > r.Tail {
		found = found[len(found)-r.Tail:]
	}
	return found
}

// Query gives the kept lines of a function, then those to come if they are to be followed.
func (s *logStore) Query(ctx context.Context, r logs.Request) (<-chan logs.Message, error) {
	news := make(chan logs.Message, keptLines)
	s.mu.Lock()
	kept := s.matching(r)
	if r.Follow {
		s.followers[news] = r.Name
	}
	s.mu.Unlock()
	answer := make(chan logs.Message)
	go func() {
		defer close(answer)
		if r.Follow {
			defer func() {
				s.mu.Lock()
				delete(s.followers, news)
				s.mu.Unlock()
			}()
		}
		for _, m := range kept {
			select {
			case answer <- m:
			case <-ctx.Done():
				return
			}
		}
		for r.Follow {
			select {
			case m := <-news:
				select {
				case answer <- m:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return answer, nil
}
