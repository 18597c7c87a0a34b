// Provider runs the functions of OpenFaaS's gateway as Deployments and Services of Kubernetes, in one namespace.
//
// It is written on the SDK of providers and on Kubernetes' client alone. Its gateway is in the same pod.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	bootstrap "github.com/openfaas/faas-provider"
	"github.com/openfaas/faas-provider/proxy"
	"github.com/openfaas/faas-provider/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	port      = 8081
	namespace = "openfaas-fn"
	// As the gateway's, in manifests/openfaas.yaml.
	timeout = 60 * time.Second
)

func main() {
	if err := run(); err != nil {
		log.Fatalf("provider: %v", err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	listen := port
	settings := &types.FaaSConfig{
		TCPPort: &listen, ReadTimeout: timeout, WriteTimeout: timeout, EnableHealth: true,
		MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024,
	}
	functions := newFunctions(ctx, client)
	bootstrap.Router().HandleFunc("/api/v1/query", noCounts)
	bootstrap.Serve(ctx, handlers(functions, settings), settings)
	return nil
}

func handlers(f *functions, settings *types.FaaSConfig) *types.FaaSHandlers {
	a := api{f}
	return &types.FaaSHandlers{
		DeployFunction: a.deploy,
		UpdateFunction: a.update,
		DeleteFunction: here(a.delete),
		ScaleFunction:  here(a.scale),
		FunctionLister: here(a.list),
		FunctionStatus: here(a.status),
		FunctionProxy:  proxy.NewHandlerFunc(*settings, f, false),
		ListNamespaces: a.namespaces,
		Health:         a.health,
		Info:           a.info,
		Secrets:        refuse("secrets"),
		Logs:           refuse("logs"),
	}
}
