package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/openfaas/faas-provider/types"
)

const (
	minLabel   = "com.openfaas.scale.min"
	zeroLabel  = "com.openfaas.scale.zero"
	zeroAfter  = "com.openfaas.scale.zero-duration"
	readyPath  = "com.openfaas.ready.http.path"
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
	tailLines  = 10
)

// errReplaced says that another deployment has taken over: look the function up again.
var errReplaced = errors.New("the function was updated or removed")

// Function is a deployment and its replicas. An update is a new Function that takes over from the one before.
type Function struct {
	deployment types.FunctionDeployment
	created    time.Time
	backend    Backend
	secrets    map[string][]byte
	logs       *logStore

	mu       sync.Mutex
	desired  int
	closed   bool
	replicas []*Replica
	turn     int
	serial   int
	retry    time.Duration
	failure  error // why the last replica ended, until one is ready again
	lastUsed time.Time
	losses   losses
	changed  chan struct{} // closed and made anew whenever a waiting request should look again
}

func newFunction(d types.FunctionDeployment, created time.Time, b Backend, secrets map[string][]byte, logs *logStore) *Function {
	return &Function{
		deployment: d, created: created, backend: b, secrets: secrets, logs: logs,
		retry: firstRetry, lastUsed: time.Now(), changed: make(chan struct{}),
	}
}

// label is the value of a deployment's label; empty where it has none.
func label(d types.FunctionDeployment, name string) string {
	if d.Labels == nil {
		return ""
	}
	return (*d.Labels)[name]
}

// minimum is the number of replicas to start with, and to leave zero by.
func (f *Function) minimum() int {
	if n, err := strconv.Atoi(label(f.deployment, minLabel)); err == nil && n > 0 {
		return n
	}
	return 1
}

// scale sets the wanted number of replicas; those too many end once their requests are answered.
func (f *Function) scale(desired int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scaleLocked(desired)
}

func (f *Function) scaleLocked(desired int) {
	f.desired, f.retry, f.failure = desired, firstRetry, nil
	// Scaling is a use: the time to zero starts anew.
	f.lastUsed = time.Now()
	f.reconcile()
}

// reconcile starts or drains replicas until there are as many as wanted; those that are ready stay first.
func (f *Function) reconcile() {
	slices.SortStableFunc(f.replicas, func(a, b *Replica) int {
		switch {
		case a.ready == b.ready:
			return 0
		case a.ready:
			return -1
		}
		return 1
	})
	staying := 0
	for _, r := range f.replicas {
		if r.draining {
			continue
		}
		if staying++; staying > f.desired {
			r.draining = true
			if r.inFlight == 0 {
				close(r.idle)
			}
			go f.drain(r)
		}
	}
	for ; staying < f.desired && !f.closed; staying++ {
		f.startOne()
	}
	f.wake()
}

// wake follows every change of replicas: requests that wait look again.
func (f *Function) wake() {
	f.losses.note(f.desired, f.ready(), time.Now())
	close(f.changed)
	f.changed = make(chan struct{})
}

// startOne starts a replica in the background: a container may take a second.
func (f *Function) startOne() {
	f.serial++
	r := &Replica{
		name: fmt.Sprintf("%s-%s-%d", f.deployment.Service, strconv.FormatInt(f.created.UnixMilli(), 36), f.serial),
		idle: make(chan struct{}),
		gone: make(chan struct{}),
	}
	f.replicas = append(f.replicas, r)
	go f.run(r)
}

// run is a replica's life from start to end.
func (f *Function) run(r *Replica) {
	instance, err := f.backend.Start(r.name, f.deployment, f.secrets, f.logs.writer(f.deployment.Service, r.name))
	if err != nil {
		f.ended(r, fmt.Errorf("replica %s could not be started: %w", r.name, err))
		return
	}
	f.mu.Lock()
	r.instance = instance
	unwanted := r.draining
	f.mu.Unlock()
	if unwanted {
		instance.Stop()
	}
	go f.watch(r)
	<-instance.done
	tail := f.logs.tail(f.deployment.Service, r.name, tailLines)
	f.ended(r, fmt.Errorf("replica %s of image %s ended (%s); its last output:\n%s", r.name, f.deployment.Image, instance.exit, tail))
}

// ended forgets a replica that is gone, and has it replaced if it was wanted: later and later if it never gets ready.
func (f *Function) ended(r *Replica, why error) {
	close(r.gone)
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, other := range f.replicas {
		if other == r {
			f.replicas = append(f.replicas[:n:n], f.replicas[n+1:]...)
			break
		}
	}
	defer f.wake()
	if r.draining || f.closed {
		return
	}
	log.Printf("%s", why)
	wait := time.Duration(0)
	if r.wasReady {
		f.losses.lose(f.ready(), time.Now())
	} else {
		f.failure = why
		wait = f.retry
		f.retry = min(2*f.retry, lastRetry)
	}
	time.AfterFunc(wait, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reconcile()
	})
}

// acquire gives a ready replica, the one with the fewest requests under way, in turn among equals. It waits for one to
// get ready, and starts the first where there is none. Each acquire needs its release.
func (f *Function) acquire(ctx context.Context) (*Replica, error) {
	for {
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return nil, errReplaced
		}
		f.lastUsed = time.Now()
		if f.desired == 0 {
			f.scaleLocked(f.minimum())
		}
		if best := f.leastBusy(); best != nil {
			best.inFlight++
			f.mu.Unlock()
			return best, nil
		}
		changed, failure := f.changed, f.failure
		f.mu.Unlock()
		if failure != nil {
			return nil, failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("no replica of %s got ready: %w", f.deployment.Service, ctx.Err())
		}
	}
}

func (f *Function) leastBusy() *Replica {
	var best *Replica
	f.turn++
	for n := range f.replicas {
		r := f.replicas[(f.turn+n)%len(f.replicas)]
		if r.ready && !r.draining && (best == nil || r.inFlight < best.inFlight) {
			best = r
		}
	}
	return best
}

// release gives a replica back; refused is true where it did not even take the connection.
func (f *Function) release(r *Replica, refused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if refused {
		r.ready = false
		f.losses.note(f.desired, f.ready(), time.Now())
	}
	f.lastUsed = time.Now()
	if r.inFlight--; r.draining && r.inFlight == 0 {
		close(r.idle)
	}
}

// waitReady waits for the first replica; an error is why one ended instead.
func (f *Function) waitReady(ctx context.Context) error {
	r, err := f.acquire(ctx)
	if err == nil {
		f.release(r, false)
	}
	return err
}

// close drains all replicas; requests that wait are told to look the function up again.
func (f *Function) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.desired = true, 0
	f.reconcile()
}

// isIdle tells whether the function has asked to be scaled to zero and has not been used for as long as it said. While it
// starts it is not idle: one whose start takes longer would never get ready.
func (f *Function) isIdle(now time.Time) bool {
	if label(f.deployment, zeroLabel) != "true" {
		return false
	}
	after, err := time.ParseDuration(label(f.deployment, zeroAfter))
	if err != nil || after <= 0 {
		after = 15 * time.Minute
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	busy, hasStarted := 0, f.failure != nil
	for _, r := range f.replicas {
		busy += r.inFlight
		hasStarted = hasStarted || r.wasReady && !r.draining
	}
	return f.desired > 0 && busy == 0 && hasStarted && now.Sub(f.lastUsed) > after
}

// waitGone returns when no replica is left.
func (f *Function) waitGone() {
	for {
		f.mu.Lock()
		left, changed := len(f.replicas), f.changed
		f.mu.Unlock()
		if left == 0 {
			return
		}
		<-changed
	}
}
