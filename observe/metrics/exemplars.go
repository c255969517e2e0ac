package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// exemplars has the last traced request of each classic bucket, and of the one above the last bound.
type exemplars [len(classicBounds) + 1]atomic.Pointer[prometheus.Exemplar]

// Exemplar records a request whose trace is sampled, with the id of the trace in hex. Its duration is counted by Done. Requests that
// are not traced do not come here.
func (r *Requests) Exemplar(trace string, d time.Duration, at time.Time) {
	all := r.exemplars.Load()
	if all == nil {
		r.exemplars.CompareAndSwap(nil, new(exemplars))
		all = r.exemplars.Load()
	}
	i, _ := slices.BinarySearch(classicBounds[:], d)
	all[i].Store(&prometheus.Exemplar{Labels: prometheus.Labels{"trace_id": trace}, Value: d.Seconds(), Timestamp: at})
}

// addTo adds the exemplars to the histogram of a scrape.
func (e *exemplars) addTo(h prometheus.Metric) prometheus.Metric {
	if e == nil {
		return h
	}
	var all []prometheus.Exemplar
	for i := range e {
		if x := e[i].Load(); x != nil {
			all = append(all, *x)
		}
	}
	if with, err := prometheus.NewMetricWithExemplars(h, all...); err == nil { // otherwise there is none yet, or one has a label that is too long
		return with
	}
	return h
}
