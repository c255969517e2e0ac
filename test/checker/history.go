// Package checker holds what clients saw of a cluster against what a cluster may
// show. It is to sequins what Jepsen's checkers are to databases: it knows
// nothing of how the cluster works, only what was asked, what was answered, when,
// and what had been done to the nodes at that time.
//
// A test records a History: Reads by its clients, and Events by whoever publishes
// versions and disturbs nodes. Check goes through it and returns every
// Violation:
//
//   - an answer that is not what its version holds for the key, which includes a
//     404 for a key that exists, or a version that had not been published;
//   - an answer from an older version than one that the same node had given
//     before, even if it was restarted in between;
//   - an error status while every partition had a live, reachable replica, or one
//     other than 503 from a node that has just started;
//   - no answer, or a late one, from a node that nobody had touched;
//   - a node that is still behind a while after the last fault.
//
// Save keeps a history in a file, one line of JSON for each event and read.
package checker

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Read is one GET of a key and its answer. Times count from the beginning of
// the history.
type Read struct {
	Node   string        `json:"node"` // that was asked
	Client int           `json:"client"`
	Start  time.Duration `json:"start"` // before the request was sent
	End    time.Duration `json:"end"`   // when the answer was there

	Key     string `json:"key"`
	Code    int    `json:"code,omitempty"` // 0: there was no answer
	Err     string `json:"err,omitempty"`  // why not
	Version string `json:"version,omitempty"`
	Body    string `json:"body,omitempty"` // the value, or the line of an error
	Peer    string `json:"peer,omitempty"` // that the node had the answer from
}

// Kind says what an Event is.
type Kind string

const (
	// Publish: Version is about to appear in the source.
	Publish Kind = "publish"

	// Start: the process of Node is about to be started. It may answer 503 until
	// it has answered one request with something else.
	Start Kind = "start"
	// Up: it is up, and has to take requests.
	Up Kind = "up"
	// Down: it is about to be ended in any way. Requests may find nobody.
	Down Kind = "down"
	// Pause: it is about to be stopped in its tracks. Requests may take long, and
	// those in flight may fail of old age.
	Pause Kind = "pause"
	// Resume: it has been told to go on.
	Resume Kind = "resume"

	// Unsafe: from now on there may be partitions without a live replica that Node
	// reaches, or any node if it is "".
	Unsafe Kind = "unsafe"
	// Safe: there are none any more.
	Safe Kind = "safe"

	// Calm: the last fault is over, and Version is the newest complete one.
	Calm Kind = "calm"
	// Fault: something else that is worth a line in the file; Check ignores it.
	Fault Kind = "fault"
)

// An Event is something that was done to the cluster.
type Event struct {
	At      time.Duration `json:"at"`
	Kind    Kind          `json:"kind"`
	Node    string        `json:"node,omitempty"`
	Version string        `json:"version,omitempty"`
	Note    string        `json:"note,omitempty"`
}

// A History is what happened, in any order. The zero History is empty and begins
// with its first use of Now. Its methods may be called from several goroutines.
type History struct {
	mu     sync.Mutex
	begin  time.Time
	Reads  []Read
	Events []Event
}

// Now is the time since the beginning.
func (h *History) Now() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now()
}

func (h *History) now() time.Duration {
	if h.begin.IsZero() {
		h.begin = time.Now()
	}
	return time.Since(h.begin)
}

// Note adds an event that happens now.
func (h *History) Note(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.At = h.now()
	h.Events = append(h.Events, e)
}

// Add adds the reads of a client that has come to its end.
func (h *History) Add(reads []Read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Reads = append(h.Reads, reads...)
}

// Save writes the history to a file, compressed by gzip: first the events, then
// the reads. It makes the directory if there is none.
func (h *History) Save(path string) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := gzip.NewWriter(f)
	defer func() { err = errors.Join(err, w.Close()) }()
	enc := json.NewEncoder(w)
	for _, e := range h.Events {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	for _, r := range h.Reads {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
