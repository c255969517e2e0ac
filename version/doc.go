// Package version owns the versions of a database on this node: the rules by
// which they are loaded, activated and removed, and the set of versions that can
// be read.
//
// A version passes through as events. The db's goroutine in package node turns
// what has happened (the source was listed, a partition is ready, a load has
// ended) into an Event for Next, which returns the new State and the Actions to
// carry out. Next is a pure function without clock, disk or network: all rules
// are in machine.go and decide.go, tested by tables and random walks.
//
//	            open                         switch
//	AVAILABLE ──────────────┐   ┌──────────┐        ┌────────┐
//	    │ load              ├──▶│ PREPARED │───────▶│ ACTIVE │
//	    ▼        planned    │   └──────────┘        └────────┘
//	BUILDING ───────────────┘    │  ▲    │               │ a newer version is active
//	    │                   fails│  │    │ superseded    ▼
//	    └──────────▶ ERROR ◀─────┘  │    └─────────▶ REMOVING ──▶ closed, deleted, forgotten
//	        fails      │   retry    │                    │
//	                   └────────────┴────────────────────┘ wanted again
//
// The successors of each state are listed at Status. Two further states refine it:
// Work is the background work on a version in any state, and Exit is the step of
// a version in REMOVING. A version's blocks are being opened, loaded or given up
// while it is in each of these states, so one enum would need all combinations.
//
// A request reads through one atomic pointer: Set.Acquire returns a Handle on the
// current version, Handle.Get reads a key from one of its blocks, and
// Handle.Release releases it. Acquire increments a reference count and allocates
// nothing. A version that has left the set is closed by its owner (Version.Close)
// after the last reference is released.
//
// A version whose files have changed in the source is another input of its name,
// which is loaded and switched to like a newer version: see package
// internal/content.
//
// Cluster is the interface to the other nodes. Solo implements it for a single
// node.
package version
