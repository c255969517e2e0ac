package metrics

import (
	"context"
	"errors"
	"time"

	"sequins/observe/status"
)

// Load counts loads from the source. The zero value counts nothing.
type Load struct {
	// Bytes and Records are what was read from the source, and Unchanged are the partitions that a load has not built, because their
	// blocks were those of other versions; by db.
	Bytes, Records, Unchanged *Vector
	// Statsd sends the progress to an agent; nil without SendTo.
	Statsd *Statsd

	failures, seconds, running *Vector
}

func (m *Metrics) newLoad() Load {
	return Load{
		Bytes:     m.counter("sequins_load_bytes_total", "Bytes read from the source by loads.", "db"),
		Records:   m.counter("sequins_load_records_total", "Records read from the source by loads.", "db"),
		Unchanged: m.counter("sequins_load_unchanged_partitions_total", "Partitions that got the block of another version, because their input has not changed.", "db"),
		failures:  m.counter("sequins_load_failures_total", "Failed loads.", "db"),
		seconds: m.durations("sequins_load_duration_seconds", "Duration of successful loads.",
			[]float64{.1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600}, "db"),
		running: m.gauge("sequins_loads_running", "Loads in progress.", "db"),
	}
}

// Begin reports the begin of a load of db. The returned function must be called once with the load's error, or nil. A load
// that was cancelled has not failed.
func (l Load) Begin(db string) func(error) {
	start := time.Now()
	l.running.Add(1, db)
	l.failures.create(db)
	l.seconds.create(db)
	return func(err error) {
		l.running.Add(-1, db)
		l.Statsd.Files(db, 0)
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			l.failures.Add(1, db)
		default:
			l.seconds.Add(time.Since(start).Seconds(), db)
		}
	}
}

// Transfer counts blocks that are copied between nodes. The zero value counts nothing.
type Transfer struct {
	Received, Given *Vector // bytes, by db
	Blocks, Refused *Vector // received blocks that were published, and that were not; by db
	Streams         *Vector // running copies, by direction: received or given
}

func (m *Metrics) newTransfer() Transfer {
	return Transfer{
		Received: m.counter("sequins_peer_received_bytes_total", "Bytes of blocks received from other nodes.", "db"),
		Given:    m.counter("sequins_peer_given_bytes_total", "Bytes of blocks sent to other nodes.", "db"),
		Blocks:   m.counter("sequins_peer_blocks_total", "Blocks received from other nodes, verified and published.", "db"),
		Refused:  m.counter("sequins_peer_blocks_refused_total", "Copies of blocks from other nodes that broke off or were not what they should be.", "db"),
		Streams:  m.gauge("sequins_peer_streams", "Blocks that are being copied between nodes, by direction: given or received.", "direction"),
	}
}

// Events counts events of versions. The zero value counts nothing.
type Events struct {
	Events  *Vector // by db and kind
	Dropped *Vector // that the webhook has not received
}

func (m *Metrics) newEvents() Events {
	return Events{
		Events:  m.counter("sequins_events_total", "Events of versions.", "db", "kind"),
		Dropped: m.counter("sequins_webhook_events_dropped_total", "Events that were given up before the webhook had received them."),
	}
}

// DB creates the counters of a db at 0.
func (e Events) DB(db string) {
	for _, kind := range status.EventKinds {
		e.Events.create(db, string(kind))
	}
}
