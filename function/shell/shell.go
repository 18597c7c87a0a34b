// Package shell runs a function written in Go in either of its two ways: kept alive behind HTTP, or forked for each
// request by the classic watchdog.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const (
	maxBodyBytes       = 16 << 20
	defaultExecTimeout = 25 * time.Second
	// Longer than any caller keeps an idle connection.
	idleTimeout = 150 * time.Second
	usage       = "usage: %s fork | %[1]s serve [PORT]\n"
)

// Handler turns a request's body into its answer; an error is bad input.
type Handler func(ctx context.Context, body []byte) ([]byte, error)

// Route is a path that has a handler of its own.
type Route struct {
	Pattern string // as http.ServeMux has it
	Handler http.Handler
}

var errTimeout = errors.New("exec_timeout has passed")

// Main runs the function as its argument says; kept alive, it has these routes too.
func Main(h Handler, routes ...Route) {
	var err error
	switch words := os.Args[1:]; {
	case len(words) == 1 && words[0] == "fork":
		err = fork(h)
	case len(words) == 1 && words[0] == "serve":
		err = serve(h, os.Getenv("port"), routes)
	case len(words) == 2 && words[0] == "serve":
		err = serve(h, words[1], routes)
	default:
		fmt.Fprintf(os.Stderr, usage, os.Args[0])
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fork answers the one request on stdin.
func fork(h Handler) error {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	answer, err := h(context.Background(), body)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(answer)
	return err
}

// serve answers HTTP, also HTTP/2 without TLS, on a port (8080 if it is not said) until SIGTERM, then finishes what is under way.
func serve(h Handler, portText string, routes []Route) error {
	port, err := number("port", portText, 8080)
	if err != nil {
		return err
	}
	maxInflight, err := number("max_inflight", os.Getenv("max_inflight"), 0)
	if err != nil {
		return err
	}
	execTimeout := defaultExecTimeout
	if text := os.Getenv("exec_timeout"); text != "" {
		if execTimeout, err = time.ParseDuration(text); err != nil || execTimeout <= 0 {
			return fmt.Errorf("exec_timeout=%q: a duration above 0, such as 25s, was expected", text)
		}
	}
	handler := Mux(h, maxInflight, execTimeout, routes...)
	if os.Getenv("tell_worker") != "" {
		worker, err := os.Hostname()
		if err != nil {
			return err
		}
		handler = telling(worker, handler)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Protocols:         protocols,
		Addr:              net.JoinHostPort(os.Getenv("host"), strconv.Itoa(port)),
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       idleTimeout,
	}
	stopped := make(chan error, 1)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		<-ctx.Done()
		stopped <- server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// telling names this replica in each answer of a handler, as the local OpenFaaS's provider does.
func telling(worker string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Worker", worker)
		handler.ServeHTTP(w, r)
	})
}

// Mux serves health and the function; more requests at once than maxInflight (0: any number) get 429.
func Mux(h Handler, maxInflight int, execTimeout time.Duration, routes ...Route) http.Handler {
	mux := http.NewServeMux()
	for _, each := range routes {
		mux.Handle(each.Pattern, each.Handler)
	}
	mux.HandleFunc("GET /_/health", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	})
	var slots chan struct{}
	if maxInflight > 0 {
		slots = make(chan struct{}, maxInflight)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if slots != nil {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			default:
				http.Error(w, "as many requests are under way as max_inflight allows", http.StatusTooManyRequests)
				return
			}
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		ctx, cancel := context.WithTimeoutCause(r.Context(), execTimeout, errTimeout)
		defer cancel()
		answer, err := h(ctx, body)
		switch {
		case errors.Is(context.Cause(ctx), errTimeout):
			http.Error(w, errTimeout.Error(), http.StatusGatewayTimeout)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			_, _ = w.Write(answer)
		}
	})
	return mux
}

func number(name, text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%q: a whole number was expected", name, text)
	}
	return n, nil
}
