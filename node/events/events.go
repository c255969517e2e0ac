// Package events owns what happens to the versions of databases as people and programs see it. Each kind of event
// (status.EventKind) is one method of DB, which gives a line of the log, an entry of the history, a count in the
// metrics, and a request to the webhook.
//
// The goroutine of a database calls the method. It takes a lock for the time of an append, and never waits for the
// webhook: that has a bounded queue and a goroutine of its own, which sends one event after another, retries after
// growing pauses, and gives events up when they are too old, or if the queue is full.
package events

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sequins/observe/metrics"
	"sequins/observe/status"
)

// Options are the settings of a Recorder. The zero value is valid.
type Options struct {
	// Node is the host:port of this node in events.
	Node string
	// Target is where events are sent; nil disables the webhook.
	Target *Target
	// Build is the version of the program, for the header User-Agent.
	Build string
	// Metrics counts events.
	Metrics metrics.Events
	// Logger logs failures of the webhook; nil means slog.Default().
	Logger *slog.Logger
}

// Recorder records the events of a node. It is safe for concurrent use. A nil *Recorder has no history, and its DBs
// only log.
type Recorder struct {
	o       Options
	boot    string // random, common to the ids of the events of this process
	webhook *webhook

	mu   sync.Mutex
	seq  int64                     // of the last event
	last map[string][]status.Event // by db, and of the node by ""; the newest last
}

// history is the number of events that are kept, of the node and of each db, however much happens to others.
const history = 50

// New returns a Recorder, which the caller must close.
func New(o Options) *Recorder {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	boot := make([]byte, 8)
	_, _ = rand.Read(boot) // it never returns an error
	return &Recorder{o: o, boot: hex.EncodeToString(boot), last: make(map[string][]status.Event), webhook: startWebhook(o)}
}

// SetTarget changes where events are sent, from the next request on. With nil, the events in the queue are dropped.
func (r *Recorder) SetTarget(t *Target) { r.webhook.target.Store(t) }

// Close waits up to two seconds until the events in the queue are sent, once each, and drops the others. Nothing is recorded after it.
func (r *Recorder) Close() error {
	w := r.webhook
	r.mu.Lock()
	close(w.queue)
	close(w.closing)
	r.mu.Unlock()
	timeout := time.AfterFunc(closeTimeout, w.cancel)
	defer timeout.Stop()
	<-w.ended
	w.cancel()
	w.client.CloseIdleConnections()
	return nil
}

// maxReason limits Event.Reason, in bytes. A reason may contain the output of a load process.
const maxReason = 1000

// record adds an event to the history, the metrics and the queue of the webhook.
func (r *Recorder) record(db, name string, kind status.EventKind, reason string) {
	if r == nil {
		return
	}
	e := status.Event{
		Node: r.o.Node, DB: db, Version: name, Kind: kind, Reason: oneLine(reason),
		Time: time.Now().UTC().Truncate(time.Millisecond),
	}
	r.o.Metrics.Events.Add(1, db, string(kind))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	e.ID = fmt.Sprintf("%s-%d", r.boot, r.seq)
	for _, of := range []string{"", db} {
		last := append(r.last[of], e)
		r.last[of] = last[max(0, len(last)-history):]
	}
	r.webhook.send(e) // under the lock, so that the order is that of the ids
}

// Last returns the last 50 events of a db, or of the node if db is "", the newest first.
func (r *Recorder) Last(db string) []status.Event {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.last[db])
	slices.Reverse(list)
	return list
}

// oneLine joins the lines of a reason, and cuts it off.
func oneLine(s string) string {
	const cut = "…"
	if len(s) > 4*maxReason { // more is not worth looking at
		s = s[:4*maxReason]
	}
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\uFFFD")
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason-len(cut)], "") + cut
}
