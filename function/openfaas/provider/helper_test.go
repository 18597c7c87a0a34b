package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/openfaas/faas-provider/types"
)

// TestMain makes this binary the function under test too: replicas are processes of it.
func TestMain(m *testing.M) {
	switch os.Getenv("behave") {
	case "serve":
		serveFunction()
	case "provide":
		port, _ := strconv.Atoi(os.Getenv("port"))
		state := os.Getenv("state")
		fmt.Println(serve(config{
			host: "127.0.0.1", port: port, instance: "framestorm-test", backend: "process", state: state,
			images: filepath.Join(filepath.Dir(state), "images.json"), namespace: "openfaas-fn", upstream: time.Second,
		}))
		os.Exit(0)
	case "crash":
		fmt.Println("cannot find the model")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// serveFunction echoes, once the file starts_after is there; /sleep takes 300 ms, /unready fails its health check from then
// on, /broken answers what is no HTTP.
func serveFunction() {
	for path := os.Getenv("starts_after"); path != ""; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	var unready atomic.Bool
	http.HandleFunc("/_/health", func(w http.ResponseWriter, _ *http.Request) {
		if unready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sleep":
			time.Sleep(300 * time.Millisecond)
		case "/unready":
			unready.Store(true)
		case "/broken":
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(connection, "no HTTP\r\n\r\n")
				_ = connection.Close()
			}
			return
		case "/rights":
			_, secret := os.ReadFile(filepath.Join(os.Getenv("secret_mount_path"), "token"))
			_, closed := os.ReadFile("/etc/shadow")
			_, _ = fmt.Fprint(w, os.Getuid(), os.Getgid(), secret, os.IsPermission(closed))
		case "/switch":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "other")
			w.WriteHeader(http.StatusSwitchingProtocols)
		case "/group":
			group, _ := os.ReadFile("/proc/self/cgroup")
			_, _ = w.Write(group)
		}
		// Read whole before the answer begins: the server would drop the rest of a long body.
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	fmt.Println("listening on", os.Getenv("port"))
	fmt.Println(http.ListenAndServe(os.Getenv("host")+":"+os.Getenv("port"), nil))
}

// start gives a registry with a process backend, and its proxy.
func start(t *testing.T, dir string) (*Registry, *httptest.Server) {
	t.Helper()
	return startWith(t, dir, config{instance: "framestorm-test"})
}

// writeImages leaves a file of images in a folder.
func writeImages(t *testing.T, dir string) string {
	t.Helper()
	text, _ := json.Marshal(map[string]process{
		"echo":  {Command: []string{os.Args[0]}, Env: map[string]string{"behave": "serve"}},
		"crash": {Command: []string{os.Args[0]}, Env: map[string]string{"behave": "crash"}},
		"gone":  {Command: []string{"/does/not/exist"}},
	})
	path := filepath.Join(dir, "images.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func startWith(t *testing.T, dir string, c config) (*Registry, *httptest.Server) {
	t.Helper()
	c.images = writeImages(t, dir)
	backend, err := newProcessBackend(c, filepath.Join(dir, "replicas"))
	if err != nil {
		t.Fatal(err)
	}
	secrets := secretStore{filepath.Join(dir, "secrets")}
	g := newRegistry("openfaas-fn", filepath.Join(dir, "functions.json"), backend, secrets, newLogStore(filepath.Join(dir, "logs")))
	if err := g.load(); err != nil {
		t.Fatal(err)
	}
	router := mux.NewRouter()
	proxy := newProxy(g, 5*time.Second)
	router.Handle("/function/{name}", proxy)
	router.Handle("/function/{name}/{params:.*}", proxy)
	server := httptest.NewServer(router)
	t.Cleanup(func() { server.Close(); g.close(); backend.Close() })
	return g, server
}

func deployment(image string) types.FunctionDeployment {
	return types.FunctionDeployment{Service: "echo", Image: image}
}

func mustDeploy(t *testing.T, g *Registry, d types.FunctionDeployment) *Function {
	t.Helper()
	if err := g.deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f, err := g.get(d.Service)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// deploySlow deploys a function that starts once the file is there.
func deploySlow(t *testing.T, g *Registry, d types.FunctionDeployment) (f *Function, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "start")
	d.EnvVars = map[string]string{"starts_after": file}
	// As a deploy that has waited for as long as it does.
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if err := g.deploy(ctx, d); err != nil {
		t.Fatal(err)
	}
	f, err := g.get(d.Service)
	if err != nil {
		t.Fatal(err)
	}
	return f, file
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not in 10 s: %s", what)
}

func scaleTo(t *testing.T, g *Registry, n int) {
	t.Helper()
	if err := g.scale("echo", n); err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("%d replicas", n), func() bool {
		f, _ := g.get("echo")
		return f.counts().ready == n && len(f.views()) == n
	})
}
