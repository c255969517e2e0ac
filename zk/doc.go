// Package zk owns the session with ZooKeeper: it keeps ephemeral znodes published and directories watched. It defines
// the names of znodes, but not what they mean.
//
// Publishing is declarative. Publish and Unpublish record the desired state and return; one goroutine (reconcile)
// applies it, and again from the start with each new session. Each watched directory has a goroutine
// (follow) that lists it, waits for a change, waits a while longer so that many changes are read as one, and lists it
// again. Without a session, the last listing stays in use.
//
// A third goroutine (run) maintains the connection (package wire): it connects again when one has ended, begins a new
// session when the last one has expired, and notifies the other goroutines. A new connection has no watches: all
// directories are listed again. No method blocks on ZooKeeper, except Claim and, for a few seconds, Close.
package zk
