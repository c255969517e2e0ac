// Package metrics owns the numbers that a node shows to Prometheus: counters
// and histograms of requests, of loads and of what peers are asked, and gauges
// of the versions.
//
// What is counted on the way of a GET costs nanoseconds: the server takes a
// *Requests once per db, and then only adds to counters of its own stripe
// (Requests.Done). What changes seldom goes through client_golang, and what
// has a state elsewhere is asked for when somebody scrapes (Server.SetState).
// Nothing is ever labelled by key, and only dbs of the source are labels. Those who
// watch by DogStatsD have a few of the same numbers sent (Metrics.SendTo).
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is all that one node counts, with a registry of its own.
type Metrics struct {
	// Server counts requests.
	Server *Server
	// Load counts what is loaded from the source.
	Load *Load
	// Proxy counts what other nodes are asked.
	Proxy *Proxy
	// Cluster shows how this node stands with the others.
	Cluster *Cluster
	// Process is what is so of the process as a whole.
	Process *Process
	// Statsd sends to an agent; nil: see SendTo.
	Statsd *Statsd

	registry *prometheus.Registry
}

// New returns metrics that are all zero, with those of the Go runtime and of
// the process beside them.
func New() *Metrics {
	m := &Metrics{Server: newServer(), Load: newLoad(), Proxy: new(Proxy), Cluster: new(Cluster), Process: newProcess(), registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		m.Server, m.Load, m.Proxy, m.Cluster, m.Process,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Registry is where a test, or a package with gauges of its own, finds the
// collectors.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
