// Package zk owns the session with ZooKeeper: ephemeral znodes that are there as long as they are wanted, and
// directories whose children are followed. It knows the names that znodes have, and nothing of what they mean.
//
// What a node wants to be published is desired state. Publish and Unpublish note it and return; one goroutine
// (reconcile) works towards it, in batches, and begins anew with each session. A directory that is watched has a
// goroutine of its own (follow) that lists it, waits until something has changed, waits a while longer, so that many
// changes become one, and lists it again. What was seen last stays in use while there is no session.
//
// A third goroutine (run) looks after the connection. The client library reconnects by itself, and begins a new
// session when the last one has expired; run tells the other two. Nobody who calls this package ever waits for
// ZooKeeper, except in Flush and, for a few seconds, in Close.
package zk
