package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"

	"github.com/gorilla/mux"
	"github.com/openfaas/faas-provider/types"
)

// maxReplicas guards this one machine against a slip of the finger.
const maxReplicas = 100

// api answers what the gateway and faas-cli ask under /system/.
type api struct {
	registry *Registry
	secrets  secretStore
}

func (a api) deploy(w http.ResponseWriter, r *http.Request) { a.put(w, r, false) }
func (a api) update(w http.ResponseWriter, r *http.Request) { a.put(w, r, true) }

func (a api) put(w http.ResponseWriter, r *http.Request, mustExist bool) {
	var d types.FunctionDeployment
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		http.Error(w, "a deployment as JSON was expected: "+err.Error(), http.StatusBadRequest)
		return
	}
	if mustExist {
		// faas-cli updates first, and deploys on 404.
		if _, err := a.registry.get(d.Service); err != nil {
			fail(w, err)
			return
		}
	}
	if err := a.registry.deploy(r.Context(), d); err != nil {
		log.Printf("deploy %s: %v", d.Service, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// here refuses requests that name another namespace than the one there is.
func (a api) here(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := a.registry.checkNamespace(r.URL.Query().Get("namespace")); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		next(w, r)
	}
}

func (a api) delete(w http.ResponseWriter, r *http.Request) {
	var request types.DeleteFunctionRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := a.registry.checkNamespace(request.Namespace); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	fail(w, a.registry.delete(request.FunctionName))
}

func (a api) scale(w http.ResponseWriter, r *http.Request) {
	var request types.ScaleServiceRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, "replicas as JSON were expected: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := a.registry.checkNamespace(request.Namespace); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if request.Replicas > maxReplicas {
		http.Error(w, fmt.Sprintf("%d replicas are more than the %d allowed here", request.Replicas, maxReplicas), http.StatusBadRequest)
		return
	}
	fail(w, a.registry.scale(mux.Vars(r)["name"], int(request.Replicas)))
}

func (a api) list(w http.ResponseWriter, r *http.Request) {
	list := []types.FunctionStatus{}
	for _, f := range a.registry.all() {
		list = append(list, status(f, asksUsage(r)))
	}
	reply(w, list, nil)
}

func (a api) status(w http.ResponseWriter, r *http.Request) {
	f, err := a.registry.get(mux.Vars(r)["name"])
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, status(f, asksUsage(r)), nil)
}

// asksUsage tells whether the caller wants the use of resources; the gateway, which asks for each request, does not.
func asksUsage(r *http.Request) bool {
	asked, err := strconv.ParseBool(r.URL.Query().Get("usage"))
	return err == nil && asked
}

func status(f *Function, withUsage bool) types.FunctionStatus {
	d, c := f.deployment, f.counts()
	s := types.FunctionStatus{
		Name: d.Service, Image: d.Image, Namespace: d.Namespace, EnvProcess: d.EnvProcess, EnvVars: d.EnvVars,
		Secrets: d.Secrets, Labels: d.Labels, Annotations: d.Annotations, Limits: d.Limits, Requests: d.Requests,
		ReadOnlyRootFilesystem: d.ReadOnlyRootFilesystem, CreatedAt: f.created,
		Replicas: uint64(c.desired), AvailableReplicas: uint64(c.ready),
	}
	if withUsage {
		s.Usage = &types.FunctionUsage{}
		for _, v := range f.views() {
			used, _ := v.stats.usage()
			s.Usage.TotalMemoryBytes += used.MemoryBytes
		}
	}
	return s
}

// replicas lists every replica with its address: for balancers, for status, and for what Prometheus is to scrape.
func (a api) replicas(w http.ResponseWriter, r *http.Request) {
	// Prometheus has no password for it; from outside it is nobody's business.
	if host, _, _ := net.SplitHostPort(r.RemoteAddr); !net.ParseIP(host).IsLoopback() {
		http.Error(w, "for this machine only", http.StatusForbidden)
		return
	}
	list := []view{}
	for _, f := range a.registry.all() {
		if name := r.URL.Query().Get("function"); name == "" || name == f.deployment.Service {
			list = append(list, f.views()...)
		}
	}
	if r.URL.Query().Get("format") != "prometheus" {
		reply(w, list, nil)
		return
	}
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{}
	for _, v := range list {
		if v.Metrics != "" {
			groups = append(groups, group{[]string{v.Metrics}, map[string]string{"function": v.Function, "replica": v.Name}})
		}
	}
	reply(w, groups, nil)
}

func (a api) namespaces(w http.ResponseWriter, _ *http.Request) {
	reply(w, []string{a.registry.namespace}, nil)
}

func (a api) health(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func (a api) info(w http.ResponseWriter, _ *http.Request) {
	reply(w, types.ProviderInfo{
		Name:          "framestorm",
		Orchestration: "one machine",
		Version:       &types.VersionInfo{Release: "dev", SHA: "unknown"},
	}, nil)
}

func reply(w http.ResponseWriter, value any, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Printf("reply: %v", err)
	}
}

// fail answers by an error, or 202 where there is none.
func fail(w http.ResponseWriter, err error) {
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, errNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
