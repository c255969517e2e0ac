// Package gate decides whether a content of a database may be served: it compares figures of its blocks with the rules of the database, so that a
// batch job that has failed quietly does not reach the readers.
//
// The figures of the blocks on this node come from their footers, and Measure looks keys up. A Report of them is published to the other nodes, with rules or without. Judge is a pure
// function of these measures, the reports of the other nodes, the rules and the totals of the content that is served: the same Facts lead to the same
// Verdict. Until it is Passed, the node neither advertises the content nor switches to it. docs/design/CONTENT.md has the order of the reasons.
//
// Nothing here keeps state, starts a goroutine or reads a clock. What a node remembers is a Finding, which the caller keeps.
package gate

import (
	"sequins/observe/status"
	"sequins/store"
)

// Verdict is the result of Judge.
type Verdict struct {
	// Finding is how the content was judged: what to remember as Facts.Before, and to report of the content while it is served. It has a Reason if it is
	// Passed and not all rules of this node have decided. It is vetoed only by this node. Who passes a content for a reason beside the rules is no
	// witness for others: then it has no Rules.
	store.Finding
	// Own is what this node finds by itself: the one to report.
	Own store.Finding
	// Measured: the measures are of all blocks on this node, by its rules.
	Measured bool
	Checks   []status.GateCheck // of the rules that could be applied to the figures
	// Excused: it has passed because of Facts.Excused.
	Excused bool
	// Waits: it is Pending for something that Facts.Waited ends.
	Waits bool
	// Skipped are the rules that could not be applied and why; "" if there are none.
	Skipped string
}

// MayServe reports whether the node may advertise the content and switch to it.
func (v Verdict) MayServe() bool { return v.State == store.Passed }
