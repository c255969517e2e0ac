package metrics

import (
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

// families are the metrics that a collector reads or computes at each scrape.
type families []*family

type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func (f *families) gauge(name, help string, labels ...string) *family {
	return f.family(prometheus.GaugeValue, name, help, labels)
}

func (f *families) counter(name, help string, labels ...string) *family {
	return f.family(prometheus.CounterValue, name, help, labels)
}

func (f *families) family(kind prometheus.ValueType, name, help string, labels []string) *family {
	one := &family{prometheus.NewDesc(name, help, labels, nil), kind}
	*f = append(*f, one)
	return one
}

func (f families) describe(ch chan<- *prometheus.Desc) {
	for _, one := range f {
		ch <- one.desc
	}
}

func (f *family) emit(ch chan<- prometheus.Metric, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
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
