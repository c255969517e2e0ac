package metrics

import (
	"math"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// exemplar is a traced request.
type exemplar struct {
	trace    string
	duration time.Duration
	at       time.Time
}

// exemplars has the last traced request of each classic bucket, and of the one above the last bound.
type exemplars [len(classicBounds) + 1]atomic.Pointer[exemplar]

// Exemplar records a request whose trace is sampled, with the id of the trace in hex. Its duration is counted by Done. Requests that
// are not traced do not come here.
func (r *Requests) Exemplar(trace string, d time.Duration, at time.Time) {
	all := r.exemplars.Load()
	if all == nil {
		r.exemplars.CompareAndSwap(nil, new(exemplars))
		all = r.exemplars.Load()
	}
	all[classicBucket(d)].Store(&exemplar{trace, d, at})
}

// classicBucket returns the index of the classic bucket of a duration.
func classicBucket(d time.Duration) int {
	for i, bound := range classicBounds {
		if d <= bound {
			return i
		}
	}
	return len(classicBounds)
}

// addTo adds the exemplars to the histogram of a scrape.
func (e *exemplars) addTo(h *dto.Histogram) {
	if e == nil {
		return
	}
	for i := range e {
		x := e[i].Load()
		if x == nil {
			continue
		}
		shown := &dto.Exemplar{
			Label: []*dto.LabelPair{{Name: proto.String("trace_id"), Value: proto.String(x.trace)}},
			Value: proto.Float64(x.duration.Seconds()), Timestamp: timestamppb.New(x.at),
		}
		h.Exemplars = append(h.Exemplars, shown) // of the native histogram
		if i == len(classicBounds) {
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: proto.Float64(math.Inf(1)), CumulativeCount: proto.Uint64(h.GetSampleCount())})
		}
		if i < len(h.Bucket) { // in the order of their bounds
			h.Bucket[i].Exemplar = shown
		}
	}
}
