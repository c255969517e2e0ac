// Package node runs a sequins node: it follows the source, loads versions, switches to them, and provides the server with their state.
//
// The follower lists the source at each refresh and wakes the goroutine of each database (db.run). That goroutine takes one message after the other.
// After each it looks at what is here and on other nodes, which are facts, asks version.Decide, and carries out the actions (db.decide) by its parts:
// the lister (the versions in the source), the loads, the keeper (the versions in the version.Set and their blocks), the judge (gates) and the memory
// (STATE.json). Slow operations (listing, loading, waiting for readers, deleting) run in goroutines of their own (background), and their ends are
// messages. Only the goroutine of a database changes its facts.
//
// The files have an order, and none uses what a later one declares: shared and common, what the databases of a node and the parts of a database share;
// memory; gate, the judge; blocks, release and keeper; loading, turn, division and load; list and retry; view; db; follow; node and status.
//
// A request uses only Node.Set, which is one atomic load and a map lookup, and then the version.Set. The status pages read a view that each database
// publishes after every event (view.go), so they never wait for it.
//
// A node that cannot join its cluster opens its databases as at any start, and admits requests; their goroutines wait, and the source is not looked at,
// until it has joined.
//
// Node.Run consists of the start and the shutdown sequence. It waits for every goroutine.
package node
