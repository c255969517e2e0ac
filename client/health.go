package client

import (
	"sync/atomic"
	"time"
)

// zone is where a node is, seen from Options.Zone.
type zone int32

const (
	unknownZone zone = iota // one of the two has none, or no map has named the node's
	sameZone
	otherZone
	zones = iota
)

// node is what the client knows of the zone and the health of an address. A node that fails is asked after all others, and once
// in a while before them, so that its recovery is noticed.
type node struct {
	addr string
	seed bool
	zone atomic.Int32 // by the latest map with the node

	gets, others chan struct{} // as many elements as connections of Client.gets and Client.others are in use; nil without limit

	strikes atomic.Int32 // lost races since the last answer or failure
	failed  atomic.Int32 // failures since the last answer
	retryAt atomic.Int64 // time of the client's clock before which a failing node is asked last
}

const (
	// maxStrikes is the number of races in a row that a node may lose.
	maxStrikes = 3
	// minPause and maxPause bound the time for which a failing node is asked last. It doubles with each failure.
	minPause = 500 * time.Millisecond
	maxPause = 15 * time.Second
)

// newNode returns the state of a node. c.mu is held, or c not yet in use.
func (c *Client) newNode(addr string) *node {
	n := &node{addr: addr}
	if c.opts.Transport == nil {
		n.gets, n.others = make(chan struct{}, c.opts.MaxConnsPerNode), make(chan struct{}, c.opts.MaxConnsPerNode)
	}
	return n
}

// isNear reports whether the node is in the zone of the client.
func (n *node) isNear() bool { return zone(n.zone.Load()) == sameZone }

// answered records a usable answer.
func (n *node) answered() {
	if n.strikes.Load() != 0 || n.failed.Load() != 0 {
		n.strikes.Store(0)
		n.failed.Store(0)
	}
}

// fail records a failure.
func (n *node) fail(now time.Duration) {
	n.retryAt.Store(int64(now + pause(n.failed.Add(1))))
}

// lost records that a hedged request or the deadline of a call was faster. Several in a row are a failure, and each one
// while the node is failing: a node that never answers would otherwise never be found out, because its requests are
// canceled.
func (n *node) lost(now time.Duration) {
	if n.strikes.Add(1) >= maxStrikes || n.failed.Load() > 0 {
		n.strikes.Store(0)
		n.fail(now)
	}
}

// pause returns for how long a node is asked last after a number of failures.
func pause(failures int32) time.Duration {
	return min(minPause<<min(max(failures-1, 0), 10), maxPause)
}

// isFailing reports whether the node has failed and not answered since.
func (n *node) isFailing() bool { return n.failed.Load() > 0 }

// probe reports whether the node, which is failing, may be asked before others: once after each pause.
func (n *node) probe(now time.Duration) bool {
	at := n.retryAt.Load()
	return int64(now) >= at && n.retryAt.CompareAndSwap(at, int64(now+pause(n.failed.Load())))
}
