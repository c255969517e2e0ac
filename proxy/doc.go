// Package proxy owns the asking of peers: for a key whose partition is on other
// nodes, it gets the answer of one of them. It knows no versions and no
// cluster: who may be asked, and for what, is in the Query.
//
// Client.Fetch draws a peer (race.next: at random among those that are well,
// then those that are failing) and asks it on the caller's own goroutine, over a
// connection that is open already, until the stage's time is over. That is all
// for nearly every request: no goroutine, no timer, one allocation. Where it is
// not enough, race.run goes on: each attempt is a goroutine then, a further one
// begins when a stage's time is over or when one has failed, and the first
// usable answer wins. A small answer is usable when it is here whole, so a peer
// that breaks off in its middle is one that failed; a large one when its header
// is, and the rest is streamed by the Answer's body.
//
// Losers clean up after themselves. They stay until the time of their race is
// over: a small answer that comes until then leaves a connection that can be
// used again, anything else ends with the connection being closed. A connection
// that is still being opened is kept for later.
//
// Every peer (peer.go) has a bounded number of connections, those that are idle
// kept for idleTime, and a record of how it has done. What a peer sends
// (header.go, conn.go) is taken to be hostile: a header has at most 8 KiB, an
// answer without a length is refused, and a connection on which anything is left
// over, or comes unasked, is closed.
package proxy
