package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// deployWait is how long a deploy waits for the first replica, to be able to say why it crashed. It stays below the 25 s
// that the gateway gives a request; a function that is slower to get ready is deployed all the same.
const deployWait = 20 * time.Second

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

var errNotFound = errors.New("not found")

// saved is what outlives the provider of a function.
type saved struct {
	Deployment types.FunctionDeployment `json:"deployment"`
	Created    time.Time                `json:"created"`
	Desired    int                      `json:"desired"`
}

// Registry holds all functions by name.
type Registry struct {
	namespace string
	file      string
	backend   Backend
	secrets   secretStore
	logs      *logStore

	mu        sync.RWMutex
	functions map[string]*Function
	dormant   map[string]saved // load could not start them; the next provider may
	deploying sync.Mutex       // one deploy, update or delete at a time
	saving    sync.Mutex       // scaling saves too, at any time
}

func newRegistry(namespace, file string, b Backend, secrets secretStore, logs *logStore) *Registry {
	return &Registry{
		namespace: namespace, file: file, backend: b, secrets: secrets, logs: logs,
		functions: map[string]*Function{}, dormant: map[string]saved{},
	}
}

// get finds a function by its name, with or without the namespace behind a dot.
func (g *Registry) get(name string) (*Function, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	f, ok := g.functions[g.plain(name)]
	if !ok {
		return nil, fmt.Errorf("function %s: %w", name, errNotFound)
	}
	return f, nil
}

// plain is a function's name without the namespace.
func (g *Registry) plain(name string) string { return strings.TrimSuffix(name, "."+g.namespace) }

func (g *Registry) all() []*Function {
	g.mu.RLock()
	defer g.mu.RUnlock()
	list := make([]*Function, 0, len(g.functions))
	for _, name := range slices.Sorted(maps.Keys(g.functions)) {
		list = append(list, g.functions[name])
	}
	return list
}

// checkNamespace refuses any namespace but the one there is.
func (g *Registry) checkNamespace(name string) error {
	if name != "" && name != g.namespace {
		return fmt.Errorf("namespace %q does not exist; there is %q", name, g.namespace)
	}
	return nil
}

// check says what is wrong with a deployment.
func (g *Registry) check(d types.FunctionDeployment) error {
	if !validName.MatchString(d.Service) {
		return fmt.Errorf("function name %q: small letters, digits and dashes, at most 63, are allowed", d.Service)
	}
	if err := g.checkNamespace(d.Namespace); err != nil {
		return err
	}
	if len(d.Constraints) > 0 {
		return fmt.Errorf("constraints %v: there is one machine only", d.Constraints)
	}
	if text := label(d, minLabel); text != "" {
		if n, err := strconv.ParseUint(text, 10, 64); err != nil || n > maxReplicas {
			return fmt.Errorf("label %s=%s: a whole number up to %d was expected", minLabel, text, maxReplicas)
		}
	}
	if text := label(d, zeroAfter); text != "" {
		if after, err := time.ParseDuration(text); err != nil || after <= 0 {
			return fmt.Errorf("label %s=%s: a duration such as 15m was expected", zeroAfter, text)
		}
	}
	for _, name := range d.Secrets {
		if !g.secrets.has(name) {
			return fmt.Errorf("secret %q does not exist; make it by: faas-cli secret create %s", name, name)
		}
	}
	return g.backend.Check(d)
}

// deploy starts a function, or a new version of one: the old replicas answer until the new one is ready, and go on if
// it crashes. An error says why it did.
func (g *Registry) deploy(ctx context.Context, d types.FunctionDeployment) error {
	if err := g.check(d); err != nil {
		return err
	}
	d.Namespace = g.namespace
	g.deploying.Lock()
	defer g.deploying.Unlock()
	before, _ := g.get(d.Service)
	secrets, err := g.secrets.of(d.Secrets)
	if err != nil {
		return err
	}
	f := newFunction(d, time.Now(), g.backend, secrets, g.logs)
	desired := f.minimum()
	if before != nil {
		desired = max(desired, before.counts().desired)
	}
	f.scale(desired)
	ctx, cancel := context.WithTimeout(ctx, deployWait)
	defer cancel()
	if err := f.waitReady(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		f.close()
		return err
	}
	g.mu.Lock()
	g.functions[d.Service] = f
	delete(g.dormant, d.Service)
	g.mu.Unlock()
	if before != nil {
		before.close()
	}
	return g.save()
}

func (g *Registry) delete(name string) error {
	g.deploying.Lock()
	defer g.deploying.Unlock()
	service := g.plain(name)
	g.mu.Lock()
	_, isDormant := g.dormant[service]
	delete(g.dormant, service)
	g.mu.Unlock()
	if isDormant {
		return g.save()
	}
	f, err := g.get(name)
	if err != nil {
		return err
	}
	g.mu.Lock()
	delete(g.functions, service)
	g.mu.Unlock()
	f.close()
	return g.save()
}

func (g *Registry) scale(name string, desired int) error {
	f, err := g.get(name)
	if err != nil {
		return err
	}
	f.scale(desired)
	return g.save()
}

// idle scales functions to zero that asked for it, for ever.
func (g *Registry) idle(every time.Duration) {
	for now := range time.Tick(every) {
		for _, f := range g.all() {
			if f.isIdle(now) {
				log.Printf("%s: idle, scaled to zero", f.deployment.Service)
				f.scale(0)
			}
		}
	}
}

func (g *Registry) save() error {
	g.saving.Lock()
	defer g.saving.Unlock()
	var list []saved
	for _, f := range g.all() {
		list = append(list, saved{f.deployment, f.created, f.counts().desired})
	}
	g.mu.RLock()
	for _, name := range slices.Sorted(maps.Keys(g.dormant)) {
		list = append(list, g.dormant[name])
	}
	g.mu.RUnlock()
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(g.file, text)
}

// replaceFile writes a file for this user only, wholly or not at all: it is on disk before it takes the place of another.
func replaceFile(path string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		_ = os.Remove(next.Name())
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// load starts the functions of the provider before this one.
func (g *Registry) load() error {
	text, err := os.ReadFile(g.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var list []saved
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return fmt.Errorf("%s is unreadable, remove it to start without functions: %w", filepath.Base(g.file), err)
	}
	for _, s := range list {
		if err := g.check(s.Deployment); err != nil {
			log.Printf("%s is not started again: %v", s.Deployment.Service, err)
			g.dormant[s.Deployment.Service] = s
			continue
		}
		secrets, err := g.secrets.of(s.Deployment.Secrets)
		if err != nil {
			return err
		}
		f := newFunction(s.Deployment, s.Created, g.backend, secrets, g.logs)
		g.functions[s.Deployment.Service] = f
		f.scale(s.Desired)
	}
	return nil
}

// close ends all replicas and returns when they are gone.
func (g *Registry) close() {
	for _, f := range g.all() {
		f.close()
	}
	for _, f := range g.all() {
		f.waitGone()
	}
}
