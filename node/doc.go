// Package node runs a sequins node: it follows the source, loads versions, switches to them, and provides the server with their state.
//
// Node.follow lists the source at each refresh and wakes the goroutine of each database (db.run). That goroutine lists the database's versions and
// keeps the facts; after each change it asks version.Decide, and carries out the actions (db.decide) with the loader, the store and the version.Set.
// Slow operations (listing, loading, waiting for readers, deleting) run in goroutines of their own (load.go, list.go), and their ends are messages.
// Only the goroutine of a database changes its facts.
//
// A request uses only Node.Set, which is one atomic load and a map lookup, and then the version.Set. The status pages read a view that each database
// publishes after every event (view.go), so they never wait for it.
//
// Node.Run consists of the start and the shutdown sequence. It waits for every goroutine.
package node
