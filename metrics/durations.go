package metrics

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// classicBounds are the upper ends of the latency buckets that every Prometheus
// gets. An answer from memory takes one to five microseconds, one from another
// continent's disk seconds.
var classicBounds = [...]time.Duration{
	1e3, 2e3, 5e3, 10e3, 20e3, 50e3, 100e3, 200e3, 500e3,
	1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6,
	1e9, 2e9, 5e9, 10e9,
}

// One that asks for native histograms gets those as well, with four buckets to a
// power of two: 19 % from one to the next. They begin at 2^-20 s, about a
// microsecond, below which everything is as good as zero; what takes more than
// 2^9 s is counted with what takes that.
const (
	nativeSchema = 2
	nativeFirst  = -20<<nativeSchema + 1 // the index of the first bucket
	nativeLast   = 9 << nativeSchema
	nativeZero   = 1.0 / (1 << 20) // seconds
)

// nativeBound is the upper end of a native bucket in seconds.
func nativeBound(index int) float64 { return math.Exp2(float64(index) / (1 << nativeSchema)) }

// bounds are the upper ends of the buckets that are counted in: those of both
// histograms, so that one increment serves both. What is above the last goes
// into one more.
var bounds = func() (all []time.Duration) {
	all = append(all, classicBounds[:]...)
	for i := nativeFirst - 1; i <= nativeLast; i++ {
		all = append(all, time.Duration(nativeBound(i)*1e9)) // nothing is between whole nanoseconds
	}
	slices.Sort(all)
	return slices.Compact(all)
}()

// bucketCount is len(bounds)+1, for arrays: half a second, one and two are in
// both histograms.
const bucketCount = len(classicBounds) + (nativeLast - nativeFirst + 2) - 3 + 1

// firstOf is the first bucket that a number of nanoseconds with so many bits can
// fall into.
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

// bucket finds the bucket of a duration: a few steps from the first that its
// power of two can fall into.
func bucket(d time.Duration) int {
	i := int(firstOf[bits.Len64(uint64(max(d, 0)))])
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	return i
}

// histogram makes a metric of what has been counted in buckets.
func histogram(desc *prometheus.Desc, buckets *[bucketCount]uint64, sum float64, labels ...string) prometheus.Metric {
	classic := make(map[float64]uint64, len(classicBounds))
	native := make(map[int]int64)
	var count, zero uint64
	nextClassic, index := 0, nativeFirst
	for i, n := range buckets {
		count += n
		if i < len(bounds) && nextClassic < len(classicBounds) && bounds[i] == classicBounds[nextClassic] {
			classic[bounds[i].Seconds()] = count
			nextClassic++
		}
		for index < nativeLast && i < len(bounds) && bounds[i] > time.Duration(nativeBound(index)*1e9) {
			index++
		}
		if i < len(bounds) && bounds[i].Seconds() <= nativeZero {
			zero += n
			continue
		}
		if i == len(bounds) {
			index = nativeLast
		}
		if n > 0 {
			native[index] += int64(n)
		}
	}
	return both{
		prometheus.MustNewConstHistogram(desc, count, sum, classic, labels...),
		prometheus.MustNewConstNativeHistogram(desc, count, sum, native, nil, zero, nativeSchema, nativeZero, time.Time{}, labels...),
	}
}

// both is one histogram in both of its forms; the scraper takes what it can use.
type both struct{ classic, native prometheus.Metric }

// Desc implements prometheus.Metric.
func (b both) Desc() *prometheus.Desc { return b.classic.Desc() }

// Write implements prometheus.Metric.
func (b both) Write(out *dto.Metric) error {
	var native dto.Metric
	if err := b.native.Write(&native); err != nil {
		return err
	}
	if err := b.classic.Write(out); err != nil {
		return err
	}
	h, n := out.GetHistogram(), native.GetHistogram()
	h.Schema, h.ZeroThreshold, h.ZeroCount = n.Schema, n.ZeroThreshold, n.ZeroCount
	h.PositiveSpan, h.PositiveDelta = n.PositiveSpan, n.PositiveDelta
	return nil
}
