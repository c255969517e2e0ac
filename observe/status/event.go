package status

import "time"

// EventKind is what has happened to a version on a node.
type EventKind string

const (
	// EventFound: a complete version is in the source or on disk, and this node has not known it before.
	EventFound EventKind = "found"
	// EventLoaded: the partitions of this node have been loaded.
	EventLoaded EventKind = "loaded"
	// EventHeld: the version is ready, and a gate keeps it from being served; the reason is the gate's judgement.
	EventHeld EventKind = "held"
	// EventApproved: the version is served although a gate would hold it.
	EventApproved EventKind = "approved"
	// EventActive: the node answers from the version.
	EventActive EventKind = "active"
	// EventPinned: what people have decided about the db has changed; the version is "" if none is pinned.
	EventPinned EventKind = "pinned"
	// EventRolledBack: the node answers from an older version than before.
	EventRolledBack EventKind = "rolled_back"
	// EventFailed: an attempt to load the version has failed; the reason is the error.
	EventFailed EventKind = "failed"
	// EventRemoved: the version is no longer on this node.
	EventRemoved EventKind = "removed"
)

// EventKinds are all kinds, in the order of the life of a version.
var EventKinds = []EventKind{
	EventFound, EventLoaded, EventHeld, EventApproved, EventActive, EventPinned, EventRolledBack, EventFailed, EventRemoved,
}

// Event is something that has happened to a version on a node. It is the body of a request to the webhook, and an
// element of the history.
type Event struct {
	// ID identifies the event among those of all nodes. A webhook can receive an event twice.
	ID string `json:"id"`
	// Time is when it happened, in milliseconds, UTC.
	Time time.Time `json:"time"`
	// Node is the host:port of the node.
	Node    string    `json:"node"`
	DB      string    `json:"db"`
	Version string    `json:"version"`
	Kind    EventKind `json:"kind"`
	// Reason is the reason or a detail in one line of at most 1,000 bytes; it may be empty.
	Reason string `json:"reason"`
}

// Level returns how an event is shown: LevelBad for a failure, LevelWarn for what somebody may have to look at,
// LevelGood for a switch, and "" for others.
func (e *Event) Level() string {
	switch e.Kind {
	case EventFailed:
		return LevelBad
	case EventHeld, EventPinned, EventRolledBack:
		return LevelWarn
	case EventActive, EventApproved:
		return LevelGood
	}
	return ""
}
