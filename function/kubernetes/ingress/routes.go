package main

import (
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"
	"knative.dev/networking/pkg/ingress"
)

// backends finds the addresses, as host:port, that are ready behind a service.
type backends func(v1alpha1.IngressBackend) []string

// target is where a share of a path's requests goes.
type target struct {
	addresses []string
	percent   int
	headers   map[string]string
	turn      *atomic.Uint64
}

// path is what a host has below a prefix, for requests that have certain headers.
type path struct {
	prefix      string
	match       map[string]v1alpha1.HeaderMatch
	rewriteHost string
	headers     map[string]string
	targets     []target
}

// table has the paths of each host in the order in which they are tried.
type table map[string][]path

// turns are counters by service: whose turn it is survives a new table.
type turns map[string]*atomic.Uint64

func (t turns) of(service string) *atomic.Uint64 {
	if t[service] == nil {
		t[service] = &atomic.Uint64{}
	}
	return t[service]
}

// newTable makes the table of all ingresses.
func newTable(ingresses []*v1alpha1.Ingress, ready backends, turns turns) table {
	made := table{}
	for _, each := range ingresses {
		for _, rule := range each.Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for host := range ingress.ExpandedHosts(sets.New(rule.Hosts...)) {
				for _, p := range rule.HTTP.Paths {
					made[host] = append(made[host], newPath(p, ready, turns))
				}
			}
		}
	}
	for _, paths := range made {
		// What says more about a request goes before what takes any.
		slices.SortStableFunc(paths, func(a, b path) int {
			if more := len(b.match) - len(a.match); more != 0 {
				return more
			}
			return len(b.prefix) - len(a.prefix)
		})
	}
	return made
}

func newPath(p v1alpha1.HTTPIngressPath, ready backends, turns turns) path {
	made := path{prefix: p.Path, match: p.Headers, rewriteHost: p.RewriteHost, headers: p.AppendHeaders}
	for _, split := range p.Splits {
		service := split.ServiceNamespace + "/" + split.ServiceName
		made.targets = append(made.targets, target{
			addresses: ready(split.IngressBackend),
			percent:   split.Percent,
			headers:   split.AppendHeaders,
			turn:      turns.of(service),
		})
	}
	return made
}

// find returns the first path that takes a request; nil if there is none.
func (t table) find(r *http.Request) *path {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(host)
	for i := range t[host] {
		if p := &t[host][i]; p.takes(r) {
			return p
		}
	}
	return nil
}

func (p *path) takes(r *http.Request) bool {
	for name, match := range p.match {
		if r.Header.Get(name) != match.Exact {
			return false
		}
	}
	return strings.HasPrefix(r.URL.Path, p.prefix)
}

// choose returns a target by the targets' shares.
func (p *path) choose() *target {
	if len(p.targets) == 1 {
		return &p.targets[0]
	}
	left := rand.IntN(100)
	for i := range p.targets {
		if left -= p.targets[i].percent; left < 0 {
			return &p.targets[i]
		}
	}
	return nil
}

// next returns the address whose turn it is; "" if none is ready.
func (t *target) next() string {
	if t == nil || len(t.addresses) == 0 {
		return ""
	}
	return t.addresses[t.turn.Add(1)%uint64(len(t.addresses))]
}
