package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Vector is the counters, gauges or histograms of one name, by the values of their labels. A nil Vector counts nothing,
// and so do a Load, a Transfer, an Events and a Proxy that are not of New. It is safe for concurrent use.
type Vector struct{ *prometheus.MetricVec }

// register registers a vector. Without labels it has one member, which begins at 0.
func (m *Metrics) register(of *prometheus.MetricVec, labels []string) *Vector {
	v := &Vector{MetricVec: of}
	m.registry.MustRegister(v)
	m.vectors = append(m.vectors, v)
	if len(labels) == 0 {
		v.create()
	}
	return v
}

func (m *Metrics) counter(name, help string, labels ...string) *Vector {
	return m.register(prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels).MetricVec, labels)
}

func (m *Metrics) gauge(name, help string, labels ...string) *Vector {
	return m.register(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels).MetricVec, labels)
}

func (m *Metrics) durations(name, help string, seconds []float64, labels ...string) *Vector {
	return m.register(prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, labels).MetricVec, labels)
}

// create creates a member at 0, so that its first event is visible as an increase.
func (v *Vector) create(labels ...string) prometheus.Metric {
	if v == nil {
		return nil
	}
	member, err := v.GetMetricWithLabelValues(labels...)
	if err != nil {
		panic(err) // a caller has forgotten a label
	}
	return member
}

// Add adds to a counter, to which n must not be negative, or to a gauge, or adds a value to a histogram.
func (v *Vector) Add(n float64, labels ...string) {
	switch member := v.create(labels...).(type) {
	case interface{ Add(float64) }:
		member.Add(n)
	case prometheus.Observer:
		member.Observe(n)
	}
}

// Forget drops what was counted of a removed db, but not its requests: Server.Forget does, when there are no more of them.
func (m *Metrics) Forget(db string) {
	for _, v := range m.vectors {
		v.DeletePartialMatch(prometheus.Labels{"db": db})
	}
}

type label struct{ name, value string }

// describe returns the description of a metric that a collector reads at each scrape, and the values of its labels.
func describe(name, help string, labels []label) (desc *prometheus.Desc, values []string) {
	names := make([]string, len(labels))
	values = make([]string, len(labels))
	for i, l := range labels {
		names[i], values[i] = l.name, l.value
	}
	return prometheus.NewDesc(name, help, names, nil), values
}

func gauge(ch chan<- prometheus.Metric, name, help string, value float64, labels ...label) {
	desc, values := describe(name, help, labels)
	ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, values...)
}

func counter(ch chan<- prometheus.Metric, name, help string, value float64, labels ...label) {
	desc, values := describe(name, help, labels)
	ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, values...)
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func unixTime(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1e3
}
