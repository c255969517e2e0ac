package metrics

import (
	"context"
	"errors"
	"time"

	"sequins/observe/status"
)

// Load counts loads from the source. It is safe for concurrent use; the zero value counts nothing.
type Load struct {
	bytes, records, failures, unchanged *vector
	seconds, running                    *vector

	statsd *Statsd
}

func (m *Metrics) newLoad() Load {
	return Load{
		bytes:     m.counter("sequins_load_bytes_total", "Bytes read from the source by loads.", "db"),
		records:   m.counter("sequins_load_records_total", "Records read from the source by loads.", "db"),
		failures:  m.counter("sequins_load_failures_total", "Failed loads.", "db"),
		unchanged: m.counter("sequins_load_unchanged_partitions_total", "Partitions that got the block of another version, because their input has not changed.", "db"),
		seconds: m.durations("sequins_load_duration_seconds", "Duration of successful loads.",
			[]float64{.1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600}, "db"),
		running: m.gauge("sequins_loads_running", "Loads in progress.", "db"),
	}
}

// Read counts bytes and records read from the source for a db since the last call. Call it once per many records.
func (l Load) Read(db string, bytes, records int64) {
	if bytes < 0 || records < 0 {
		return
	}
	l.bytes.add(float64(bytes), db)
	l.records.add(float64(records), db)
}

// Unchanged counts partitions that a load of db did not build, because their blocks were those of other versions.
func (l Load) Unchanged(db string, partitions int) { l.unchanged.add(float64(max(0, partitions)), db) }

// Files reports the number of files that a load of db has yet to read.
func (l Load) Files(db string, left int64) { l.statsd.files(db, left) }

// File reports that a load of db has read a file or failed to, how long that took, and how many files are left.
func (l Load) File(db string, took time.Duration, left int64) {
	l.statsd.file(db, took)
	l.statsd.files(db, left)
}

// Begin reports the begin of a load of db. The returned function must be called once with the load's error, or nil. A load
// that was cancelled has not failed.
func (l Load) Begin(db string) func(error) {
	start := time.Now()
	l.running.add(1, db)
	l.failures.create(db)
	l.seconds.create(db)
	return func(err error) {
		l.running.add(-1, db)
		l.statsd.files(db, 0)
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			l.failures.add(1, db)
		default:
			l.seconds.add(time.Since(start).Seconds(), db)
		}
	}
}

// Transfer counts blocks that are copied between nodes. It is safe for concurrent use; the zero value counts nothing.
type Transfer struct{ received, given, blocks, refused, streams *vector }

func (m *Metrics) newTransfer() Transfer {
	return Transfer{
		received: m.counter("sequins_peer_received_bytes_total", "Bytes of blocks received from other nodes.", "db"),
		given:    m.counter("sequins_peer_given_bytes_total", "Bytes of blocks sent to other nodes.", "db"),
		blocks:   m.counter("sequins_peer_blocks_total", "Blocks received from other nodes, verified and published.", "db"),
		refused:  m.counter("sequins_peer_blocks_refused_total", "Copies of blocks from other nodes that broke off or were not what they should be.", "db"),
		streams:  m.gauge("sequins_peer_streams", "Blocks that are being copied between nodes, by direction: given or received.", "direction"),
	}
}

// Received counts bytes received for a db.
func (t Transfer) Received(db string, bytes int) { t.received.add(float64(bytes), db) }

// Given counts bytes sent for a db.
func (t Transfer) Given(db string, bytes int) { t.given.add(float64(bytes), db) }

// Ended counts a copied block of a db, or one that was refused.
func (t Transfer) Ended(db string, ok bool) {
	if ok {
		t.blocks.add(1, db)
	} else {
		t.refused.add(1, db)
	}
}

// Stream counts a running copy, given or received, until the returned function is called.
func (t Transfer) Stream(direction string) (ended func()) {
	t.streams.add(1, direction)
	return func() { t.streams.add(-1, direction) }
}

// Events counts events of versions, and those that the webhook has not received. It is safe for concurrent use; the zero value counts
// nothing.
type Events struct{ events, dropped *vector }

func (m *Metrics) newEvents() Events {
	return Events{
		events:  m.counter("sequins_events_total", "Events of versions.", "db", "kind"),
		dropped: m.counter("sequins_webhook_events_dropped_total", "Events that were given up before the webhook had received them."),
	}
}

// DB creates the counters of a db at 0.
func (e Events) DB(db string) {
	for _, kind := range status.EventKinds {
		e.events.create(db, string(kind))
	}
}

// Count counts an event.
func (e Events) Count(db string, kind status.EventKind) { e.events.add(1, db, string(kind)) }

// Dropped counts events that were given up.
func (e Events) Dropped(n int) { e.dropped.add(float64(n)) }
