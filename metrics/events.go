package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"sequins/status"
)

// Events counts events of versions, and requests to the webhook. It implements prometheus.Collector and is safe for
// concurrent use. All methods may be called on a nil *Events and then count nothing.
type Events struct {
	events, sent *prometheus.CounterVec
	dropped      prometheus.Counter
	queue        prometheus.Gauge
}

func newEvents() *Events {
	e := &Events{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_events_total", Help: "Events of versions.",
		}, []string{"db", "kind"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_webhook_requests_total", Help: "Requests to the webhook.",
		}, []string{"outcome"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sequins_webhook_events_dropped_total", Help: "Events that were given up before the webhook had received them.",
		}),
		queue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sequins_webhook_queue", Help: "Events that wait to be sent to the webhook.",
		}),
	}
	for _, outcome := range []string{"ok", "error"} {
		e.sent.WithLabelValues(outcome)
	}
	return e
}

// DB creates the counters of a db at 0.
func (e *Events) DB(db string) {
	if e == nil {
		return
	}
	for _, kind := range status.EventKinds {
		e.events.WithLabelValues(db, string(kind))
	}
}

// Count counts an event.
func (e *Events) Count(db string, kind status.EventKind) {
	if e != nil {
		e.events.WithLabelValues(db, string(kind)).Inc()
	}
}

// Forget drops the counters of a removed db.
func (e *Events) Forget(db string) {
	if e != nil {
		e.events.DeletePartialMatch(prometheus.Labels{"db": db})
	}
}

// Sent counts a request to the webhook.
func (e *Events) Sent(ok bool) {
	if e == nil {
		return
	}
	outcome := "error"
	if ok {
		outcome = "ok"
	}
	e.sent.WithLabelValues(outcome).Inc()
}

// Dropped counts events that were given up.
func (e *Events) Dropped(n int) {
	if e != nil {
		e.dropped.Add(float64(n))
	}
}

// Queue sets the number of events that wait.
func (e *Events) Queue(n int) {
	if e != nil {
		e.queue.Set(float64(n))
	}
}

// Describe implements prometheus.Collector.
func (e *Events) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range e.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (e *Events) Collect(ch chan<- prometheus.Metric) {
	for _, c := range e.collectors() {
		c.Collect(ch)
	}
}

func (e *Events) collectors() []prometheus.Collector {
	return []prometheus.Collector{e.events, e.sent, e.dropped, e.queue}
}
