// Registry keeps images that are pushed on this machine and hands them to the nodes of a cluster,
// whose network is a namespace of its own.
//
// It is distribution's, as the published image of a registry has it, with one kind of storage: a folder.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"golang.org/x/sys/unix"
)

// Of a request's first line and headers; bodies are layers, which may take minutes.
const headersWithin = 10 * time.Second

func main() {
	if err := run(); err != nil {
		log.Fatalf("registry: %v", err)
	}
}

func run() error {
	folder := flag.String("folder", "", "where images are kept")
	pushed := flag.String("push", "", "address for pushes and pulls")
	pulled := flag.String("pull", "", "address for pulls alone")
	namespace := flag.String("namespace", "", "file of the network namespace that has the address for pulls")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	push, err := net.Listen("tcp", *pushed)
	if err != nil {
		return err
	}
	pull, err := listenIn(*namespace, *pulled)
	if err != nil {
		return err
	}
	registry := newRegistry(ctx, *folder)
	failed := make(chan error)
	for listener, handler := range map[net.Listener]http.Handler{push: registry, pull: readOnly(registry)} {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: headersWithin}
		go func() { failed <- server.Serve(listener) }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// listenIn listens on an address of another network namespace. The thread that has entered it ends.
func listenIn(namespace, address string) (listener net.Listener, err error) {
	file, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
			listener, err = net.Listen("tcp", address)
		}
	}()
	<-done
	return listener, err
}

func newRegistry(ctx context.Context, folder string) http.Handler {
	config := &configuration.Configuration{
		Version: configuration.CurrentVersion,
		Storage: configuration.Storage{"filesystem": configuration.Parameters{"rootdirectory": folder}},
	}
	config.Catalog.MaxEntries = 1000
	config.Log.AccessLog.Disabled = true
	return handlers.NewApp(ctx, config)
}

// readOnly answers what changes nothing.
func readOnly(registry http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "images are pushed on the machine that has the registry", http.StatusMethodNotAllowed)
			return
		}
		registry.ServeHTTP(w, r)
	})
}
