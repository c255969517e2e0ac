// Package checker checks what clients have observed of a cluster against what a
// cluster may show, as Jepsen's checkers do for databases: it does not know how
// the cluster works, only requests, answers, their times, and what was done to
// the nodes at those times.
//
// A test records a History: Reads by its clients, and Events by the code that
// publishes versions and disturbs nodes. Check returns every Violation:
//
//   - an answer that differs from the content of its version, or from each of its contents, including a
//     404 for an existing key, or a version that was not published. All values of a
//     batch, and all records of a range, must be those of one version, with none
//     missing and none too many;
//   - an answer from an older version than an earlier answer of the same node,
//     also across a restart, or of the same session, on any node;
//   - an answer from another version than the one that the request names, or a
//     refusal of a version that the node serves;
//   - an error status while every partition had a live, reachable replica, except
//     503 from a node that has just started;
//   - no answer, or a late one, from an undisturbed node on a machine that did not
//     stand still;
//   - a node that still serves an old version some time after the last fault.
//
// Save writes a history to a file, with one line of JSON for each event and read.
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

// Op is what a Read asks for.
type Op string

// The content of an answer depends on the Op.
const (
	// Get asks for Key; Body is its value.
	Get Op = ""
	// Batch asks for Keys; Values are theirs.
	Batch Op = "batch"
	// Range asks for the records within Bounds. Keys are those of the answer; Values are theirs, unless KeysOnly is set.
	Range Op = "range"
	// Count asks for the number of records within Bounds, which is Total.
	Count Op = "count"
)

// Read is a request and its answer. Times are relative to the beginning of the
// history.
type Read struct {
	Node   string        `json:"node"` // the node that received it
	Client int           `json:"client"`
	Start  time.Duration `json:"start"` // before the request was sent
	End    time.Duration `json:"end"`   // when the answer was complete

	Op   Op       `json:"op,omitempty"`
	Key  string   `json:"key,omitempty"`
	Keys []string `json:"keys,omitempty"`
	Bounds

	// Session names the session that the read belongs to, if any. Its reads follow each other in the order of Start, and
	// in the order in which they were added if that is the same.
	Session string `json:"session,omitempty"`
	AtLeast string `json:"atLeast,omitempty"` // the request is for this version or a later one; a node that is behind may refuse
	Exact   string `json:"exact,omitempty"`   // the request is for this version alone. That of a cursor is AtLeast, too

	Behind int `json:"behind,omitempty"` // the other requests of its pipeline, whose answers arrive together: each may take Patience or BatchPatience

	Code    int       `json:"code,omitempty"` // HTTP status; 0: no answer
	Err     string    `json:"err,omitempty"`  // why there was no answer, or what is malformed in it
	Version string    `json:"version,omitempty"`
	Inside  string    `json:"inside,omitempty"` // the version as the body names it, if it does
	Body    string    `json:"body,omitempty"`   // the value, or the line of an error
	Values  []*string `json:"values,omitempty"` // nil: the key is absent
	More    bool      `json:"more,omitempty"`   // the range continues after the last record
	Cursor  string    `json:"-"`                // where the range continues
	Total   int       `json:"total,omitempty"`
	Peer    string    `json:"peer,omitempty"` // the peer that the node got the answer from
}

// Bounds are those of a range of keys, in byte order. The zero Bounds contain all keys.
type Bounds struct {
	From     string `json:"from,omitempty"`   // the first key
	Until    string `json:"until,omitempty"`  // the first key after the range; "": none
	Prefix   string `json:"prefix,omitempty"` // of all keys
	After    string `json:"after,omitempty"`  // the last key of the page before
	Limit    int    `json:"limit,omitempty"`  // maximum number of records; 0: none
	KeysOnly bool   `json:"keysOnly,omitempty"`
}

// Kind is the kind of an Event.
type Kind string

const (
	// Publish: Version is about to be added to the source.
	Publish Kind = "publish"

	// Start: the process of Node is about to be started. It may answer 503 until
	// its first other answer.
	Start Kind = "start"
	// Up: the node is up and must accept requests.
	Up Kind = "up"
	// Down: the process is about to be ended in any way. Requests may get no
	// answer.
	Down Kind = "down"
	// Pause: the process is about to be stopped (SIGSTOP). Requests may be slow,
	// and those in flight may time out.
	Pause Kind = "pause"
	// Resume: the process was continued.
	Resume Kind = "resume"

	// Unsafe: from now on there may be partitions without a live replica that
	// Node can reach; if Node is "", no node can.
	Unsafe Kind = "unsafe"
	// Safe: the end of Unsafe.
	Safe Kind = "safe"

	// Back: from now on nodes may go back to older versions, as someone has pinned or excluded one; or Node may, as it has lost its disk.
	Back Kind = "back"
	// Ahead: the end of Back; all nodes serve the newest version.
	Ahead Kind = "ahead"

	// Stall: the machine itself stood still from For ago until now, so that answers
	// may be later by that, or time out.
	Stall Kind = "stall"

	// Calm: the last fault is over, and Version is the newest complete version.
	Calm Kind = "calm"
	// Fault: another fault, recorded in the file and ignored by Check.
	Fault Kind = "fault"
)

// Event is something that was done to the cluster.
type Event struct {
	At      time.Duration `json:"at"`
	Kind    Kind          `json:"kind"`
	Node    string        `json:"node,omitempty"`
	Version string        `json:"version,omitempty"`
	Note    string        `json:"note,omitempty"`
	For     time.Duration `json:"for,omitempty"` // of a Stall
}

// History contains reads and events in any order. The zero History is empty and
// begins with the first call of Now. It is safe for concurrent use.
type History struct {
	mu     sync.Mutex
	begin  time.Time
	Reads  []Read
	Events []Event
}

// Now returns the time since the beginning.
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

// Note adds an event with the current time.
func (h *History) Note(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.At = h.now()
	h.Events = append(h.Events, e)
}

// Add adds reads that have ended.
func (h *History) Add(reads ...Read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Reads = append(h.Reads, reads...)
}

// Save writes the history to a gzip file: events, then reads. It creates the
// directory if necessary.
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
