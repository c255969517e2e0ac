// Package node owns the wiring of a running sequins: it follows the source,
// has versions loaded, switches to them, and answers for all of that to the
// server.
//
// A version passes through here like this. Node.follow lists the source at
// each refresh and wakes the goroutine of each database (db.run). That lists
// the database's versions and hands what it hears, one event at a time, to
// version.Next; it carries out the actions that come back (actions.go) through
// the loader, the store and the version.Set. What takes long (listing, loading,
// waiting for readers, deleting) runs in goroutines of its own (load.go,
// list.go), whose ends are events again. Nobody else changes the state of a
// database.
//
// A request meets only Node.Set, which is one atomic load and a look-up in a
// map, and then the version.Set. The status pages read a view that each
// database publishes after every event (view.go), so they wait for nobody.
//
// Node.Run reads as two lists, start and shutdown. Every goroutine is waited
// for.
package node
