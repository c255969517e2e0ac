package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A vector is the counters, gauges or histograms of one name, by the values of their labels. A nil vector counts nothing,
// and so do a Load, a Transfer and an Events that are not of New.
type vector struct {
	of     func(labels ...string) adder
	forget func(prometheus.Labels) int
}

type adder interface{ Add(float64) }

// observer is a histogram, to which a value is added by observing it.
type observer struct{ prometheus.Observer }

// Add implements adder.
func (o observer) Add(value float64) { o.Observe(value) }

// register registers a vector. Without labels it has one member, which begins at 0.
func (m *Metrics) register(c prometheus.Collector, v *vector, labels []string) *vector {
	m.registry.MustRegister(c)
	m.vectors = append(m.vectors, v)
	if len(labels) == 0 {
		v.create()
	}
	return v
}

func (m *Metrics) counter(name, help string, labels ...string) *vector {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	return m.register(v, &vector{func(of ...string) adder { return v.WithLabelValues(of...) }, v.DeletePartialMatch}, labels)
}

func (m *Metrics) gauge(name, help string, labels ...string) *vector {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	return m.register(v, &vector{func(of ...string) adder { return v.WithLabelValues(of...) }, v.DeletePartialMatch}, labels)
}

func (m *Metrics) durations(name, help string, seconds []float64, labels ...string) *vector {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, labels)
	return m.register(v, &vector{func(of ...string) adder { return observer{v.WithLabelValues(of...)} }, v.DeletePartialMatch}, labels)
}

// create creates a member at 0, so that its first event is visible as an increase.
func (v *vector) create(labels ...string) {
	if v != nil {
		v.of(labels...)
	}
}

func (v *vector) add(n float64, labels ...string) {
	if v != nil {
		v.of(labels...).Add(n)
	}
}

// drop drops the members of a removed db.
func (v *vector) drop(db string) { v.forget(prometheus.Labels{"db": db}) }

// Forget drops what was counted of a removed db, but not its requests: Server.Forget does, when there are no more of them.
func (m *Metrics) Forget(db string) {
	for _, v := range m.vectors {
		v.drop(db)
	}
}

// label is the name of a label, and its value.
type label struct{ name, value string }

// descriptions are those of the metrics that a collector reads at each scrape: a *prometheus.Desc by name.
var descriptions sync.Map

// describe returns the description of a metric, and the values of its labels.
func describe(name, help string, labels []label) (desc *prometheus.Desc, values []string) {
	names := make([]string, len(labels))
	values = make([]string, len(labels))
	for i, l := range labels {
		names[i], values[i] = l.name, l.value
	}
	known, ok := descriptions.Load(name)
	if !ok {
		known, _ = descriptions.LoadOrStore(name, prometheus.NewDesc(name, help, names, nil))
	}
	return known.(*prometheus.Desc), values
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
