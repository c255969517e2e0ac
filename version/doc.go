// Package version owns the versions of a database on this node: the rules by which they are loaded, activated and removed, and the set of versions
// that can be read.
//
// The db's goroutine in package node keeps the Facts: what the source lists, what is on the disk, what other nodes hold and serve, what runs, and
// what it remembers over a restart. After each change of them it opens what is Unopened, asks Decide, a pure function without clock, disk or network,
// what has to be done, keeps the facts that Decide returns, and carries out each Action. What comes of an action is a fact again. So a process that is
// killed decides afterwards as before, and facts on which a decision has been carried out lead to no other one: tables and random walks test both.
// docs/design/DECISION.md says why.
//
// The life of a version, as Facts.Status tells it; in brackets what Decide orders. A version that is only listed has no status. The random walks take
// each of these steps, and no other one:
//
//	AVAILABLE → BUILDING  [load]
//	AVAILABLE → PREPARED  opening it has found a block here, or other nodes that have it: the version is in the set
//	AVAILABLE → ACTIVE    both at once, after a restart
//	AVAILABLE → ERROR     it had failed before the restart, or cannot be opened
//	AVAILABLE → REMOVING  not wanted: [delete]; if nothing is here, it is forgotten
//	BUILDING → PREPARED   the load has a plan: the version is in the set, and is advertised block by block
//	BUILDING → ERROR      the load has failed before that
//	BUILDING → REMOVING   superseded before its turn: [cancel], then [delete]
//	PREPARED → ACTIVE     [activate]: newer than the active one, or another input of its name, Replicated, Passed, and recorded
//	PREPARED → ERROR      a load of what it lacks has failed
//	PREPARED → REMOVING   [retire]
//	ACTIVE → PREPARED     another one is active, and this one is kept for rollbacks
//	ACTIVE → ERROR        the same, and it had failed while it was active, which did not show
//	ACTIVE → REMOVING     another one is active: [retire]; or the database is gone: [close]
//	ERROR → PREPARED      a further attempt has made it complete; until then it stays ERROR
//	ERROR → ACTIVE        other nodes have what it lacks, or it was served before the restart
//	ERROR → REMOVING      not wanted
//	REMOVING → PREPARED   wanted again before it was closed: [revive]
//	REMOVING → BUILDING   wanted again after that: [load]
//
// A removal goes Staying, Lingering until it has been idle, Idle [close], Closing until the last reference is released, Closed [delete], Deleting,
// forgotten; what is not in the set begins at Closed or Deleting. After a restart, and for a pinned rollback, a version becomes active that is less than
// Replicated: Decide's mustServe and mayReturn say when.
//
// Status is derived from what is kept in Entry: Coverage, Failure, Removal, and Work, which is what is being done. The Verdict stands beside it. The status
// pages show BUILDING for what is only AVAILABLE or PREPARED, and HELD and KEPT (package observe/status).
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
