package main

import (
	"log"
	"net/http"
	"time"
)

const (
	probeStarting = 20 * time.Millisecond
	probeReady    = time.Second
	// Under load a replica held back by its CPU limit answers late, and is not dead: one that is refuses at once.
	probeTimeout = 5 * time.Second
	drainTimeout = 60 * time.Second
)

// Replica is one running copy of a function. What can change is guarded by the lock of its function.
type Replica struct {
	name     string
	instance *Instance // nil until it is started
	ready    bool
	wasReady bool
	draining bool
	inFlight int
	idle     chan struct{} // closed when it is draining and no request is under way
	gone     chan struct{} // closed when it has ended
}

// probes are not kept alive: whether the server takes a new connection is the question.
var probes = &http.Client{
	Timeout:   probeTimeout,
	Transport: &http.Transport{DisableKeepAlives: true},
}

// answers asks a replica whether it is ready for requests.
func answers(address, path string) bool {
	response, err := probes.Get("http://" + address + path)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode/100 == 2
}

// watch probes the replica until its end.
func (f *Function) watch(r *Replica) {
	path := "/_/health"
	if f.deployment.Annotations != nil && (*f.deployment.Annotations)[readyPath] != "" {
		path = (*f.deployment.Annotations)[readyPath]
	}
	pause := probeStarting
	for {
		select {
		case <-r.gone:
			return
		case <-time.After(pause):
		}
		ready := answers(r.instance.Address, path)
		pause = probeStarting
		if ready {
			pause = probeReady
		}
		f.probed(r, ready)
	}
}

func (f *Function) probed(r *Replica, ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ready == r.ready {
		return
	}
	r.ready = ready
	if ready {
		if !r.wasReady {
			log.Printf("%s: ready at %s", r.name, r.instance.Address)
		}
		r.wasReady, f.failure, f.retry = true, nil, firstRetry
		// Those who waited for it are about to use it.
		f.lastUsed = time.Now()
	}
	f.wake()
}

// drain lets a replica answer what it has, then ends it. One that is only being started is ended by run.
func (f *Function) drain(r *Replica) {
	select {
	case <-r.idle:
	case <-r.gone:
		return
	case <-time.After(drainTimeout):
		log.Printf("%s: was still busy after %s and was ended", r.name, drainTimeout)
	}
	f.mu.Lock()
	instance := r.instance
	f.mu.Unlock()
	if instance != nil {
		instance.Stop()
	}
}
