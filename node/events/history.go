package events

import (
	"cmp"
	"slices"

	"sequins/observe/status"
)

// The lengths of the history, in events: of the node, and of each db, of which the last ones are kept however much
// happens to others. An event takes some hundred bytes, and its reason.
const (
	nodeHistory = 1000
	dbHistory   = 50
)

// entry is an event with its place in the order of all events.
type entry struct {
	seq   int64
	event status.Event
}

// ring holds the last entries.
type ring struct {
	limit   int
	entries []*entry // in order, from oldest on
	oldest  int      // index
}

func (r *ring) add(e *entry) {
	if len(r.entries) < r.limit {
		r.entries = append(r.entries, e)
		return
	}
	r.entries[r.oldest] = e
	r.oldest = (r.oldest + 1) % r.limit
}

// newest returns up to n entries, the newest first.
func (r *ring) newest(n int) []*entry {
	n = min(n, len(r.entries))
	found := make([]*entry, n)
	for i := range found {
		found[i] = r.entries[(r.oldest+len(r.entries)-1-i)%len(r.entries)]
	}
	return found
}

// history is the last events of the node and of each db.
type history struct {
	node ring
	dbs  map[string]*ring
}

func newHistory() history {
	return history{node: ring{limit: nodeHistory}, dbs: make(map[string]*ring)}
}

func (h *history) add(seq int64, e status.Event) {
	added := &entry{seq, e}
	h.node.add(added)
	db := h.dbs[e.DB]
	if db == nil {
		db = &ring{limit: dbHistory}
		h.dbs[e.DB] = db
	}
	db.add(added)
}

func (h *history) forget(db string) { delete(h.dbs, db) }

// all returns all entries, the newest first.
func (h *history) all() []*entry {
	found := h.node.newest(nodeHistory)
	before := int64(0) // sequence numbers begin with 1
	if len(found) > 0 {
		before = found[len(found)-1].seq
	}
	for _, db := range h.dbs {
		for _, e := range db.entries {
			if e.seq < before {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return cmp.Compare(b.seq, a.seq) })
	return found
}

// Last returns the last events of the node, at most n and 1,000, the newest first.
func (r *Recorder) Last(n int) []status.Event {
	return r.read(func(h *history) []*entry { return h.node.newest(n) })
}

// OfDB returns the last 50 events of a db, the newest first.
func (r *Recorder) OfDB(db string) []status.Event {
	return r.read(func(h *history) []*entry {
		if of := h.dbs[db]; of != nil {
			return of.newest(dbHistory)
		}
		return nil
	})
}

// All returns the last 1,000 events of the node and the last 50 of each db, the newest first.
func (r *Recorder) All() []status.Event { return r.read((*history).all) }

// read returns events of the history; nil if there are none.
func (r *Recorder) read(of func(*history) []*entry) []status.Event {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var events []status.Event
	for _, e := range of(&r.history) {
		events = append(events, e.event)
	}
	return events
}
