package main

import "time"

// counts is the function's state in numbers.
type counts struct {
	desired, ready, inFlight int
	lost                     int
	short                    time.Duration
}

// ready counts the replicas that take requests.
func (f *Function) ready() int {
	n := 0
	for _, r := range f.replicas {
		if r.ready && !r.draining {
			n++
		}
	}
	return n
}

func (f *Function) counts() counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := counts{desired: f.desired, ready: f.ready(), lost: f.losses.count, short: f.losses.short(time.Now())}
	for _, r := range f.replicas {
		c.inFlight += r.inFlight
	}
	return c
}

// shownReady is the number of ready replicas for Prometheus.
func (f *Function) shownReady() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.losses.look(f.ready(), time.Now())
}

// view is a replica as it was at one moment.
type view struct {
	Function string `json:"function"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Address  string `json:"address,omitempty"`
	Metrics  string `json:"metrics,omitempty"`
	PID      int    `json:"pid,omitempty"`
	InFlight int    `json:"in_flight"`
	stats    cgroup // read by whoever wants to know, and not while the function is locked
	network  netns
}

func (f *Function) views() []view {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]view, 0, len(f.replicas))
	for _, r := range f.replicas {
		v := view{Function: f.deployment.Service, Name: r.name, State: "starting", InFlight: r.inFlight}
		switch {
		case r.draining:
			v.State = "draining"
		case r.ready:
			v.State = "ready"
		case r.wasReady:
			v.State = "unready"
		}
		if r.instance != nil {
			v.Address, v.Metrics, v.PID = r.instance.Address, r.instance.Metrics, r.instance.pid()
			v.stats, v.network = r.instance.stats, r.instance.network
		}
		list = append(list, v)
	}
	return list
}
