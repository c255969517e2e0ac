// Package version owns the versions of a database on this node: the rules by which they are loaded, activated and removed, and the set of versions
// that can be read.
//
// The db's goroutine in package node keeps the Facts: what the source lists, what is on the disk, what other nodes hold and serve, what runs, and
// what it remembers over a restart. After each change of them it asks Decide, a pure function without clock, disk or network, what has to be done,
// keeps the facts that Decide returns, and carries out each Action. What comes of an action is a fact again. So a restart is no case of its own, and
// facts on which a decision has been carried out lead to no other one: tables and random walks test both. docs/design/DECISION.md says why.
//
// The life of a version; in brackets what Decide orders:
//
//	                     found here or elsewhere
//	         ┌─[open]──────────────────────────────┐
//	AVAILABLE                                      ▼             newer, Replicated, Passed
//	         └─[load]──▶ BUILDING ──planned──▶ PREPARED ──────────────[activate]─────────▶ ACTIVE
//	                        │  ▲                │  ▲  │                                      │
//	                  fails │  │ Retry    fails │  │  │ not wanted                           │ another is active
//	                        ▼  │                ▼  │  ▼                                      ▼
//	                        ERROR ◀─────────────┘  └─[revive]── REMOVING ◀─[retire]──────────┘
//	                          └── not wanted ──────────────────▶   │
//	                                                               └─ Lingering ─ Idle ─[close]─ Closing ─ Closed ─[delete]─▶ forgotten
//
// These are the states that people see, derived from four that are kept: Coverage, Verdict, Failure and Removal have their meanings and successors at
// their values; Work is what is being done. An active version stays active whatever fails, and one that is kept for rollbacks is PREPARED again.
//
// A request reads through one atomic pointer: Set.Acquire returns a Handle on the current version, Handle.Get reads a key from one of its blocks, and
// Handle.Release releases it. Acquire increments a reference count and allocates nothing. A version that has left the set is closed by its owner
// (Version.Close) after the last reference is released.
//
// A version whose files have changed in the source is another input of its name, which is loaded and switched to like a newer version: see package
// internal/content.
//
// Cluster is the interface to the other nodes. Solo implements it for a single node.
package version
