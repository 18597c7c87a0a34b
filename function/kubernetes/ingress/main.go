// Ingress is a small ingress of Knative Serving: it watches Knative's Ingress objects and the endpoints behind them,
// and passes on every request to one endpoint, in turn. It has no TLS, and speaks HTTP/1.1 to the endpoints.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"knative.dev/networking/pkg/client/clientset/versioned"
)

const (
	listen      = ":8080"
	readiness   = ":8081" // apart from the hosts of functions
	headersIn   = 30 * time.Second
	finishesIn  = 30 * time.Second
	callsPerS   = 50
	callsAtOnce = 100
)

func main() {
	if err := run(); err != nil {
		log.Fatalf("ingress: %v", err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = callsPerS, callsAtOnce
	p := newProxy()
	if err := start(ctx, p, kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)); err != nil {
		return err
	}
	failed := make(chan error, 2)
	ready := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	functions := &http.Server{Addr: listen, Handler: p, ReadHeaderTimeout: headersIn}
	go func() { failed <- functions.ListenAndServe() }()
	go func() {
		failed <- (&http.Server{Addr: readiness, Handler: ready, ReadHeaderTimeout: headersIn}).ListenAndServe()
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// What is under way is finished.
	end, cancel := context.WithTimeout(context.Background(), finishesIn)
	defer cancel()
	return functions.Shutdown(end)
}
