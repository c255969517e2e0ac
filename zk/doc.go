// Package zk owns the session with ZooKeeper: it keeps ephemeral znodes published and directories watched. It defines
// the names of znodes, but not what they mean.
//
// Publishing is declarative. Publish and Unpublish record the desired state and return; one goroutine (reconcile)
// applies it in batches, and again from the start with each new session. Each watched directory has a goroutine
// (follow) that lists it, waits for a change, waits a while longer so that many changes are read as one, and lists it
// again. Without a session, the last listing stays in use.
//
// A third goroutine (run) maintains the connection. The client library reconnects by itself and begins a new session
// when the last one has expired; run notifies the other goroutines. No method blocks on ZooKeeper, except Claim, Flush
// and, for a few seconds, Close.
package zk
