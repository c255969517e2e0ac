package metrics

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// classicBounds are the upper bounds of the classic latency buckets. A value from
// memory takes one to five microseconds; one from a disk on another continent
// takes seconds.
var classicBounds = [...]time.Duration{
	1e3, 2e3, 5e3, 10e3, 20e3, 50e3, 100e3, 200e3, 500e3,
	1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6,
	1e9, 2e9, 5e9, 10e9,
}

// Native histograms are reported in addition, with four buckets per power of two,
// which are 19 % wide. They begin at 2^-20 s, about a microsecond; shorter
// durations are in the zero bucket. Durations over 2^9 s are in the last bucket.
const (
	nativeSchema = 2
	nativeFirst  = -20<<nativeSchema + 1 // index of the first bucket
	nativeLast   = 9 << nativeSchema
	nativeZero   = 1.0 / (1 << 20) // in seconds
)

// nativeBound returns the upper bound of a native bucket in seconds.
func nativeBound(index int) float64 { return math.Exp2(float64(index) / (1 << nativeSchema)) }

// bounds are the upper bounds of the buckets that are counted: those of both
// histograms, so that one increment serves both. One more bucket is above the
// last bound.
var bounds = func() (all []time.Duration) {
	all = append(all, classicBounds[:]...)
	for i := nativeFirst - 1; i <= nativeLast; i++ {
		all = append(all, time.Duration(nativeBound(i)*1e9)) // durations are whole nanoseconds
	}
	slices.Sort(all)
	return slices.Compact(all)
}()

// bucketCount is len(bounds)+1, as a constant: 0.5 s, 1 s and 2 s are in both
// histograms.
const bucketCount = len(classicBounds) + (nativeLast - nativeFirst + 2) - 3 + 1

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

// histogram returns the counted buckets as a metric, with exemplars if there are any.
func histogram(desc *prometheus.Desc, buckets *[bucketCount]uint64, sum float64, traced *exemplars, labels ...string) prometheus.Metric {
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
		traced,
	}
}

// both is a histogram in its classic and native forms; the scraper uses those it
// supports.
type both struct {
	classic, native prometheus.Metric
	traced          *exemplars // may be nil
}

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
	b.traced.addTo(h)
	return nil
}
