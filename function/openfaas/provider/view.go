package main

// counts is the function's state in numbers.
type counts struct{ desired, ready, inFlight int }

func (f *Function) counts() counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := counts{desired: f.desired}
	for _, r := range f.replicas {
		c.inFlight += r.inFlight
		if r.ready && !r.draining {
			c.ready++
		}
	}
	return c
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
	usage    Usage
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
			v.usage = r.instance.stats.usage()
		}
		list = append(list, v)
	}
	return list
}
