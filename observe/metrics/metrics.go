// Package metrics owns the metrics of a node: counters and histograms of
// requests, loads and attempts at peers, and gauges of versions and the process.
//
// Counting a GET costs nanoseconds: the server gets a *Requests once per db and
// then only adds to the counters of its own stripe (Requests.Done). Rare events
// are counted by vectors of client_golang (vector.go), and state that other packages own is read at each
// scrape (Server.SetState). No metric has keys as labels, and only dbs of the
// source are labels. A few of the same metrics can be sent to a DogStatsD agent
// (Metrics.SendTo).
//
// For a version, Load counts its load, and the gauges of Server report it from
// the next scrape on.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds all metrics of a node, with a registry of its own.
type Metrics struct {
	// Server counts requests.
	Server *Server
	// Load counts loads from the source.
	Load Load
	// Transfer counts blocks that are copied between nodes.
	Transfer Transfer
	// Events counts events of versions.
	Events Events
	// Proxy counts attempts at other nodes.
	Proxy *Proxy
	// Process measures the disk.
	Process *Process
	// Statsd sends to an agent; nil without SendTo.
	Statsd *Statsd

	registry *prometheus.Registry
	vectors  []*Vector
}

// New returns metrics that are all zero, including those of the Go runtime and
// the process.
func New() *Metrics {
	m := &Metrics{Process: new(Process), registry: prometheus.NewRegistry()}
	m.Server, m.Load, m.Transfer, m.Events, m.Proxy = m.newServer(), m.newLoad(), m.newTransfer(), m.newEvents(), m.newProxy()
	m.registry.MustRegister(m.Server,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler returns a handler for scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Registry returns the registry, for tests and for packages with gauges of their
// own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
