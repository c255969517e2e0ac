package status

import (
	"slices"
	"time"

	"sequins/internal/human"
)

// WaitFor is the kind of thing that a node waits for.
type WaitFor string

const (
	// WaitForZooKeeper: a session with ZooKeeper.
	WaitForZooKeeper WaitFor = "zookeeper"
	// WaitForNodes: other nodes, to join the cluster or to hold partitions.
	WaitForNodes WaitFor = "nodes"
	// WaitForDisk: the blocks on the disk of this node, which are opened at the start.
	WaitForDisk WaitFor = "disk"
	// WaitForSource: an answer of the source.
	WaitForSource WaitFor = "source"
	// WaitForLoad: a version that is loaded, or will be.
	WaitForLoad WaitFor = "load"
)

// WaitKinds are all kinds.
var WaitKinds = []WaitFor{WaitForZooKeeper, WaitForNodes, WaitForDisk, WaitForSource, WaitForLoad}

// Wait is something that a node waits for.
type Wait struct {
	For WaitFor `json:"for"`
	// What is a noun phrase in one line, with the reason if there is one.
	What  string    `json:"what"`
	Since time.Time `json:"since,omitzero"`
	// DB and Version are what is waited for of the data; "" where it is all, or not known.
	DB      string `json:"db,omitempty"`
	Version string `json:"version,omitempty"`
	// Blocks reports whether the node is not ready because of it.
	Blocks bool `json:"blocks"`
}

// Line returns what is waited for, and since when, in one line.
func (w Wait) Line(now time.Time) string {
	if w.Since.IsZero() {
		return w.What
	}
	return w.What + " (for " + human.Duration(max(0, now.Sub(w.Since))) + ")"
}

// Blocking returns those of the things that a node waits for which keep it from being ready.
func Blocking(all []Wait) []Wait {
	return slices.DeleteFunc(slices.Clone(all), func(w Wait) bool { return !w.Blocks })
}
