package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// steps are the bounds of the durations that are counted within a decade: they are at most 20 % apart, so that quantiles can be computed
// from them. Histograms show those of 1, 2 and 5, see isShown.
var steps = [...]float64{1, 1.2, 1.43, 1.7, 2, 2.4, 2.88, 3.46, 4.16, 5, 5.95, 7.07, 8.41}

// decades are those from a microsecond to 1000 s. A value from memory takes one to five microseconds; one from a disk on another
// continent takes seconds.
const decades = 9

// bucketCount is the number of counters: one for each bound, and one above the last.
const bucketCount = decades*len(steps) + 1

var bounds = func() (all []time.Duration) {
	decade := float64(time.Microsecond)
	for range decades {
		for _, step := range steps {
			all = append(all, time.Duration(step*decade))
		}
		decade *= 10
	}
	return all
}()

// isShown reports whether histograms show a bound: those of 1, 2 and 5, up to 10 s.
func isShown(bound int) bool {
	step := bound % len(steps)
	return (step == 0 || step == 4 || step == 9) && bound < len(bounds) && bounds[bound] <= 10*time.Second
}

// bucket returns the bucket of a duration.
func bucket(d time.Duration) int {
	i, _ := slices.BinarySearch(bounds, d)
	return i
}

func histogram(desc *prometheus.Desc, buckets *[bucketCount]uint64, sum float64, labels ...string) prometheus.Metric {
	shown := make(map[float64]uint64)
	var count uint64
	for i, n := range buckets {
		count += n
		if isShown(i) {
			shown[bounds[i].Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, sum, shown, labels...)
}
