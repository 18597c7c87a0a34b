// Command provider is a single-machine OpenFaaS provider: what the gateway asks for replicas, run here as plain
// processes or as Docker containers. Clusters use OpenFaaS's own providers.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	bootstrap "github.com/openfaas/faas-provider"
	"github.com/openfaas/faas-provider/logs"
	"github.com/openfaas/faas-provider/types"
	"github.com/prometheus/client_golang/prometheus"
)

// Above the gateway's 90 s of keeping idle connections: the side that sends must be the one that closes them.
const idleTimeout = 120 * time.Second

type config struct {
	port        int
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
	if err := os.MkdirAll(c.state, 0o700); err != nil {
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
	if err := registry.load(); err != nil {
		return err
	}
	prometheus.MustRegister(collector{registry})
	go registry.idle(time.Second)

	api := api{registry: registry, secrets: secrets}
	bootstrap.Router().HandleFunc("/system/replicas", api.replicas).Methods("GET")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.Printf("provider: %s backend, port %d", c.backend, c.port)
	bootstrap.Serve(ctx, &types.FaaSHandlers{
		FunctionProxy:  newProxy(registry, c.upstream).ServeHTTP,
		FunctionLister: api.list,
		FunctionStatus: api.status,
		DeployFunction: api.deploy,
		UpdateFunction: api.update,
		DeleteFunction: api.delete,
		ScaleFunction:  api.scale,
		ListNamespaces: api.namespaces,
		Secrets:        api.secret,
		Logs:           logs.NewLogHandlerFunc(logStore, c.upstream),
		Health:         api.health,
		Info:           api.info,
	}, &types.FaaSConfig{
		TCPPort:         &c.port,
		ReadTimeout:     idleTimeout,
		WriteTimeout:    idleTimeout,
		EnableBasicAuth: c.credentials != "",
		SecretMountPath: c.credentials,
	})
	registry.close()
	return nil
}

func newBackend(c config) (Backend, error) {
	switch c.backend {
	case "process":
		return newProcessBackend(c.images, c.watchdog, filepath.Join(c.state, "replicas"))
	case "docker":
		return newDockerBackend(c.namespace)
	}
	return nil, fmt.Errorf("-backend %q is neither process nor docker", c.backend)
}
