// Command provider is a single-machine OpenFaaS provider: what the gateway asks for replicas, run here as plain
// processes or as Docker containers. Clusters use OpenFaaS's own providers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gorilla/mux"
	"github.com/openfaas/faas-provider/auth"
	"github.com/openfaas/faas-provider/logs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Above the gateway's 90 s of keeping idle connections: the side that sends must be the one that closes them.
const idleTimeout = 120 * time.Second

// headersWithin is how long a client may take for a request's headers: one that never ends them holds nothing for long.
const headersWithin = 10 * time.Second

type config struct {
	host        string
	port        int
	instance    string
	users       int
	readable    string
	backend     string
	state       string
	images      string
	watchdog    string
	credentials string
	namespace   string
	upstream    time.Duration
}

func main() {
	log.SetFlags(log.Ldate | log.Ltime | log.Lmicroseconds)
	var c config
	flag.StringVar(&c.host, "host", "127.0.0.1", "address to listen on: whoever reaches it can call every function")
	flag.StringVar(&c.instance, "instance", "framestorm-openfaas", "what this provider's control group and containers are called")
	flag.IntVar(&c.users, "users", 0, "process backend, as root: ids from here on are the replicas' users, one each; 0: they run as root")
	flag.StringVar(&c.readable, "readable", "", "process backend: folders that replicas need to read, separated by commas")
	flag.IntVar(&c.port, "port", 8083, "port of the provider")
	flag.StringVar(&c.backend, "backend", "process", "how replicas run: process or docker")
	flag.StringVar(&c.state, "state", "", "folder for deployments, secrets, logs and replicas' files")
	flag.StringVar(&c.images, "images", "", "process backend: JSON file that says how each image's process is started")
	flag.StringVar(&c.watchdog, "watchdog", "", "process backend: the classic watchdog")
	flag.StringVar(&c.credentials, "credentials", "", "folder of basic-auth-user and basic-auth-password")
	flag.StringVar(&c.namespace, "namespace", "openfaas-fn", "the one namespace of functions")
	flag.DurationVar(&c.upstream, "upstream-timeout", 60*time.Second, "time a request may take, waiting for a replica included")
	flag.Parse()
	if err := serve(c); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func serve(c config) error {
	if c.state == "" {
		return fmt.Errorf("-state is missing: a folder to keep deployments and secrets in")
	}
	// Replicas with users of their own pass through it to their folders, and see no other in it.
	if err := errors.Join(os.MkdirAll(c.state, 0o711), os.Chmod(c.state, 0o711)); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(c.host, strconv.Itoa(c.port)))
	if err != nil {
		return err
	}
	backend, err := newBackend(c)
	if err != nil {
		return err
	}
	defer backend.Close()
	secrets := secretStore{dir: filepath.Join(c.state, "secrets")}
	logStore := newLogStore(filepath.Join(c.state, "logs"))
	registry := newRegistry(c.namespace, filepath.Join(c.state, "functions.json"), backend, secrets, logStore)
	handler, err := routes(c, api{registry: registry, secrets: secrets}, newProxy(registry, c.upstream))
	if err != nil {
		return err
	}
	if err := registry.load(); err != nil {
		return err
	}
	prometheus.MustRegister(collector{registry})
	go registry.idle(time.Second)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.Printf("provider: %s backend, %s", c.backend, listener.Addr())
	server := newServer(handler, headersWithin, idleTimeout)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = server.Shutdown(context.Background())
	}
	registry.close()
	return err
}

// newServer bounds what a client may take: for the headers, and for a whole request, its answer, or between two.
func newServer(handler http.Handler, headersWithin, requestWithin time.Duration) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headersWithin, ReadTimeout: requestWithin, WriteTimeout: requestWithin,
	}
}

// routes are those of every OpenFaaS provider, as github.com/openfaas/faas-provider has them, and /system/replicas. Its
// own server cannot be used: it listens on all of the machine's addresses.
func routes(c config, a api, proxy http.Handler) (http.Handler, error) {
	guarded := func(next http.HandlerFunc) http.HandlerFunc { return next }
	if c.credentials != "" {
		reader := auth.ReadBasicAuthFromDisk{SecretMountPath: c.credentials}
		credentials, err := reader.Read()
		if err != nil {
			return nil, err
		}
		guarded = func(next http.HandlerFunc) http.HandlerFunc { return auth.DecorateWithBasicAuth(next, credentials) }
	}
	r := mux.NewRouter()
	r.HandleFunc("/system/functions", guarded(a.here(a.list))).Methods(http.MethodGet)
	r.HandleFunc("/system/functions", guarded(a.deploy)).Methods(http.MethodPost)
	r.HandleFunc("/system/functions", guarded(a.here(a.delete))).Methods(http.MethodDelete)
	r.HandleFunc("/system/functions", guarded(a.update)).Methods(http.MethodPut)
	r.HandleFunc("/system/function/{name}", guarded(a.here(a.status))).Methods(http.MethodGet)
	r.HandleFunc("/system/scale-function/{name}", guarded(a.here(a.scale))).Methods(http.MethodPost)
	r.HandleFunc("/system/info", guarded(a.info)).Methods(http.MethodGet)
	r.HandleFunc("/system/secrets", guarded(a.secret))
	r.HandleFunc("/system/logs", guarded(logs.NewLogHandlerFunc(a.registry.logs, c.upstream))).Methods(http.MethodGet)
	r.HandleFunc("/system/namespaces", a.namespaces).Methods(http.MethodGet)
	r.HandleFunc("/system/replicas", a.replicas).Methods(http.MethodGet)
	r.HandleFunc("/healthz", a.health).Methods(http.MethodGet)
	r.Handle("/metrics", promhttp.Handler())
	r.Handle("/function/{name}", proxy)
	r.Handle("/function/{name}/{params:.*}", proxy)
	return r, nil
}

func newBackend(c config) (Backend, error) {
	switch c.backend {
	case "process":
		return newProcessBackend(c, filepath.Join(c.state, "replicas"))
	case "docker":
		return newDockerBackend(c.instance, filepath.Join(c.state, "replicas"))
	}
	return nil, fmt.Errorf("-backend %q is neither process nor docker", c.backend)
}
