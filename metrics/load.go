package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Load counts loads from the source. It implements prometheus.Collector and is
// safe for concurrent use. All methods may be called on a nil *Load and then
// count nothing.
type Load struct {
	bytes, records, failures *prometheus.CounterVec
	unchanged, linked        *prometheus.CounterVec
	seconds                  *prometheus.HistogramVec
	running                  *prometheus.GaugeVec
	source                   prometheus.Counter

	statsd *Statsd
}

func newLoad() *Load {
	db := []string{"db"}
	return &Load{
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_load_bytes_total", Help: "Bytes read from the source by loads.",
		}, db),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_load_records_total", Help: "Records read from the source by loads.",
		}, db),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_load_failures_total", Help: "Failed loads.",
		}, db),
		unchanged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_load_unchanged_partitions_total", Help: "Partitions that got the block of another version, because their input has not changed.",
		}, db),
		linked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_load_unchanged_bytes_total", Help: "Sizes of the blocks of these partitions, which were not written.",
		}, db),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sequins_load_duration_seconds",
			Help:    "Duration of successful loads.",
			Buckets: []float64{.1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600},

			NativeHistogramBucketFactor: 1.2,
		}, db),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sequins_loads_running", Help: "Loads in progress.",
		}, db),
		source: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sequins_source_errors_total", Help: "Failures to list the source or a database in it.",
		}),
	}
}

// SourceFailed counts a failed listing of the source or of a db in it.
func (l *Load) SourceFailed() {
	if l != nil {
		l.source.Inc()
	}
}

// Read counts bytes and records read from the source for a db since the last
// call. Call it once per many records.
func (l *Load) Read(db string, bytes, records int64) {
	if l == nil || bytes < 0 || records < 0 {
		return
	}
	l.bytes.WithLabelValues(db).Add(float64(bytes))
	l.records.WithLabelValues(db).Add(float64(records))
}

// Unchanged counts partitions that a load of db did not build, and the size of
// their blocks, which were those of other versions.
func (l *Load) Unchanged(db string, partitions, bytes int64) {
	if l == nil || partitions < 0 || bytes < 0 {
		return
	}
	l.unchanged.WithLabelValues(db).Add(float64(partitions))
	l.linked.WithLabelValues(db).Add(float64(bytes))
}

// Files reports the number of files that a load of db has yet to read.
func (l *Load) Files(db string, left int64) {
	if l != nil {
		l.statsd.files(db, left)
	}
}

// File reports that a load of db has read a file or failed to, how long that
// took, and how many files are left.
func (l *Load) File(db string, took time.Duration, left int64) {
	if l != nil {
		l.statsd.file(db, took)
		l.statsd.files(db, left)
	}
}

// Begin reports the begin of a load of db. The returned function must be called
// once with the load's error, or nil. A load that was cancelled has not failed.
func (l *Load) Begin(db string) func(error) {
	if l == nil {
		return func(error) {}
	}
	start := time.Now()
	l.running.WithLabelValues(db).Inc()
	l.failures.WithLabelValues(db) // creates both at 0, so that the first failure is an increase
	l.seconds.WithLabelValues(db)
	return func(err error) {
		l.running.WithLabelValues(db).Dec()
		l.statsd.files(db, 0)
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			l.failures.WithLabelValues(db).Inc()
		default:
			l.seconds.WithLabelValues(db).Observe(time.Since(start).Seconds())
		}
	}
}

// Forget drops the counters of a removed db.
func (l *Load) Forget(db string) {
	if l == nil {
		return
	}
	for _, v := range []*prometheus.CounterVec{l.bytes, l.records, l.failures, l.unchanged, l.linked} {
		v.DeleteLabelValues(db)
	}
	l.seconds.DeleteLabelValues(db)
	l.running.DeleteLabelValues(db)
}

// Describe implements prometheus.Collector.
func (l *Load) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range l.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (l *Load) Collect(ch chan<- prometheus.Metric) {
	for _, c := range l.collectors() {
		c.Collect(ch)
	}
}

func (l *Load) collectors() []prometheus.Collector {
	return []prometheus.Collector{l.bytes, l.records, l.failures, l.unchanged, l.linked, l.seconds, l.running, l.source}
}
