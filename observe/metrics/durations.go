package metrics

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// classicBounds are the upper bounds of the classic latency buckets. A value from
// memory takes one to five microseconds; one from a disk on another continent
// takes seconds.
var classicBounds = [...]time.Duration{
	1e3, 2e3, 5e3, 10e3, 20e3, 50e3, 100e3, 200e3, 500e3,
	1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6,
	1e9, 2e9, 5e9, 10e9,
}

// fineSteps is how many counters there are for each power of two: they are 19 % wide, so that quantiles can be computed from them.
const fineSteps = 4

// bounds are the upper bounds of the durations that are counted: fine ones from a microsecond to 2^9 s, and those of the histogram. One
// more counter is above the last bound.
var bounds = func() (all []time.Duration) {
	all = append(all, classicBounds[:]...)
	for i := -20 * fineSteps; i <= 9*fineSteps; i++ {
		all = append(all, time.Duration(math.Exp2(float64(i)/fineSteps)*1e9)) // durations are whole nanoseconds
	}
	slices.Sort(all)
	return slices.Compact(all)
}()

// bucketCount is len(bounds)+1, as a constant: 0.5 s, 1 s and 2 s are bounds twice.
const bucketCount = len(classicBounds) + (29*fineSteps + 1) - 3 + 1

// firstOf is the first bucket of durations whose nanoseconds have a given bit
// length.
var firstOf = func() (t [65]uint8) {
	for n := range t {
		least := time.Duration(0)
		if n > 0 {
			least = time.Duration(uint64(1) << min(n-1, 62))
		}
		i, _ := slices.BinarySearch(bounds, least)
		t[n] = uint8(i)
	}
	return t
}()

// bucket returns the bucket of a duration, by a linear search of a few steps from
// firstOf.
func bucket(d time.Duration) int {
	i := int(firstOf[bits.Len64(uint64(max(d, 0)))])
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	return i
}

// histogram returns what was counted as a metric, with exemplars if there are any.
func histogram(desc *prometheus.Desc, buckets *[bucketCount]uint64, sum float64, traced *exemplars, labels ...string) prometheus.Metric {
	shown := make(map[float64]uint64, len(classicBounds))
	var count uint64
	next := 0
	for i, n := range buckets {
		count += n
		if i < len(bounds) && next < len(classicBounds) && bounds[i] == classicBounds[next] {
			shown[bounds[i].Seconds()] = count
			next++
		}
	}
	h := prometheus.MustNewConstHistogram(desc, count, sum, shown, labels...)
	var all []prometheus.Exemplar
	for i := range traced {
		if x := traced[i].Load(); x != nil {
			all = append(all, *x)
		}
	}
	if with, err := prometheus.NewMetricWithExemplars(h, all...); err == nil { // otherwise there is none yet, or one has a label that is too long
		return with
	}
	return h
}

// exemplars has the last traced request of each classic bucket, and of the one above the last bound.
type exemplars [len(classicBounds) + 1]atomic.Pointer[prometheus.Exemplar]

// Exemplar records a request whose trace is sampled, with the id of the trace in hex. Its duration is counted by Done. Requests that
// are not traced do not come here.
func (r *Requests) Exemplar(trace string, d time.Duration, at time.Time) {
	i, _ := slices.BinarySearch(classicBounds[:], d)
	r.exemplars[i].Store(&prometheus.Exemplar{Labels: prometheus.Labels{"trace_id": trace}, Value: d.Seconds(), Timestamp: at})
}
