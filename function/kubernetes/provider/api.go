package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"

	"github.com/gorilla/mux"
	"github.com/openfaas/faas-provider/types"
	kubeerrors "k8s.io/apimachinery/pkg/api/errors"
)

// api answers what the gateway and faas-cli ask under /system/.
type api struct{ functions *functions }

// here refuses requests that name another namespace than the one there is.
func here(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := checkNamespace(r.URL.Query().Get("namespace")); err != nil {
			fail(w, err)
			return
		}
		next(w, r)
	}
}

func (a api) deploy(w http.ResponseWriter, r *http.Request) {
	if d, ok := read[types.FunctionDeployment](w, r); ok {
		fail(w, a.functions.create(r.Context(), d))
	}
}

func (a api) update(w http.ResponseWriter, r *http.Request) {
	if d, ok := read[types.FunctionDeployment](w, r); ok {
		fail(w, a.functions.update(r.Context(), d))
	}
}

func (a api) delete(w http.ResponseWriter, r *http.Request) {
	if request, ok := read[types.DeleteFunctionRequest](w, r); ok {
		fail(w, a.functions.delete(r.Context(), request))
	}
}

func (a api) scale(w http.ResponseWriter, r *http.Request) {
	if request, ok := read[types.ScaleServiceRequest](w, r); ok {
		fail(w, a.functions.scale(r.Context(), mux.Vars(r)["name"], request))
	}
}

func (a api) list(w http.ResponseWriter, _ *http.Request) {
	all, err := a.functions.all()
	reply(w, all, err)
}

func (a api) status(w http.ResponseWriter, r *http.Request) {
	status, err := a.functions.status(mux.Vars(r)["name"])
	reply(w, status, err)
}

func (a api) namespaces(w http.ResponseWriter, _ *http.Request) { reply(w, []string{namespace}, nil) }

func (a api) health(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func (a api) info(w http.ResponseWriter, _ *http.Request) {
	reply(w, types.ProviderInfo{
		Name: "framestorm", Orchestration: "kubernetes", Version: &types.VersionInfo{Release: "dev", SHA: "unknown"},
	}, nil)
}

// noCounts answers as a Prometheus without data: the gateway asks one for the calls of each function it lists, and
// cannot do without an answer.
func noCounts(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": []any{}}}, nil)
}

func refuse(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this provider has no "+what+"; kubectl --namespace "+namespace+" shows them", http.StatusNotImplemented)
	}
}

// read returns what a request says; if it cannot be read, that is answered.
func read[T any](w http.ResponseWriter, r *http.Request) (value T, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&value); err != nil {
		http.Error(w, "JSON was expected: "+err.Error(), http.StatusBadRequest)
		return value, false
	}
	return value, true
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
	var refusal kubeerrors.APIStatus
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.As(err, &refusal):
		http.Error(w, err.Error(), int(refusal.Status().Code))
	default:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
