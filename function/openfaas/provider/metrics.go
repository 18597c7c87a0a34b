package main

import "github.com/prometheus/client_golang/prometheus"

var (
	functionLabels = []string{"function"}
	replicaLabels  = []string{"function", "replica"}

	wantedDesc = describe("replicas_wanted", "Replicas asked for.", functionLabels)
	readyDesc  = describe("replicas_ready",
		"Replicas that take requests; after a loss, for at least 2.5 s, those that were left.", functionLabels)
	lostDesc  = describe("replicas_lost_total", "Replicas that were ready and ended unasked.", functionLabels)
	shortDesc = describe("replicas_short_seconds_total",
		"Time in which fewer replicas were ready than wanted.", functionLabels)
	flightDesc = describe("replica_in_flight", "Requests in progress in a replica.", replicaLabels)
	cpuDesc    = describe("replica_cpu_seconds_total", "CPU time of a replica.", replicaLabels)
	throttled  = describe("replica_cpu_throttled_seconds_total",
		"Time in periods of 100 ms in which a replica used up its CPU limit and was kept from the CPU for the rest.",
		replicaLabels)
	memoryDesc = describe("replica_memory_bytes", "Memory of a replica.", replicaLabels)
	received   = describe("replica_network_receive_bytes_total",
		"Bytes a replica received, headers of all layers included.", replicaLabels)
	sent = describe("replica_network_transmit_bytes_total",
		"Bytes a replica sent, headers of all layers included.", replicaLabels)

	allDescs = []*prometheus.Desc{
		wantedDesc, readyDesc, lostDesc, shortDesc, flightDesc, cpuDesc, throttled, memoryDesc, received, sent,
	}
)

func describe(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("framestorm_"+name, help, labels, nil)
}

// collector reads the state of all replicas at each scrape; replicas that are gone leave no series behind.
type collector struct{ registry *Registry }

func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range allDescs {
		descriptions <- d
	}
}

func (c collector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	for _, f := range c.registry.all() {
		n := f.counts()
		gauge(wantedDesc, float64(n.desired), f.deployment.Service)
		gauge(readyDesc, float64(f.shownReady()), f.deployment.Service)
		counter(lostDesc, float64(n.lost), f.deployment.Service)
		counter(shortDesc, n.short.Seconds(), f.deployment.Service)
		for _, v := range f.views() {
			gauge(flightDesc, float64(v.InFlight), v.Function, v.Name)
			if usage, known := v.stats.usage(); known {
				counter(cpuDesc, usage.CPUSeconds, v.Function, v.Name)
				counter(throttled, usage.ThrottledSeconds, v.Function, v.Name)
				gauge(memoryDesc, usage.MemoryBytes, v.Function, v.Name)
			}
			if traffic, known := v.network.traffic(); known {
				counter(received, traffic.ReceivedBytes, v.Function, v.Name)
				counter(sent, traffic.SentBytes, v.Function, v.Name)
			}
		}
	}
}
