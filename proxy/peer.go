package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// peer is the state of one node: its connections and its recent performance. It is kept when the node has left the cluster: without
// connections, it is small.
type peer struct {
	addr string
	c    *Client

	// slots has one entry per connection used by an attempt, streams one per connection that
	// streams a body. A connection is opened only if none is idle, so their capacities together
	// bound the open connections.
	slots, streams chan struct{}

	mu   sync.Mutex
	idle []*conn // least recently used first

	// cost is a moving average of the duration of attempts, in nanoseconds; a failed attempt counts
	// as one stage timeout, see observe. Above Client.tolerated the peer is failing, and is asked
	// first only once after retryAt.
	cost    atomic.Int64
	retryAt atomic.Int64 // nanoseconds since Client.began
}

const (
	// idleTime is shorter than the two minutes after which a node closes idle connections.
	idleTime = time.Minute
	// retryTime is the interval at which a failing peer is asked before healthy ones.
	retryTime = time.Second
	// dialTime bounds opening a connection. It is independent of the request's timeout, so that a
	// slow handshake is not repeated for every request.
	dialTime = 5 * time.Second
	// peerConns limits the connections to one peer that attempts use; further attempts wait for one
	// until their race ends. peerStreams limits those that stream values of more than 64 KiB; beyond
	// it, such a value is fetched from another peer.
	peerConns, peerStreams = 512, 512
)

func newPeer(c *Client, addr string) *peer {
	return &peer{
		addr:  addr,
		c:     c,
		slots: make(chan struct{}, c.maxConns), streams: make(chan struct{}, c.maxStreams),
	}
}

// tryTake takes a slot and an idle connection, if both are available immediately.
func (p *peer) tryTake() *conn {
	select {
	case p.slots <- struct{}{}:
	default:
		return nil
	}
	c := p.take()
	if c == nil {
		p.leave()
	}
	return c
}

func (p *peer) leave() { <-p.slots }

// take returns an idle connection, nil if there is none. The caller holds a slot.
func (p *peer) take() *conn {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if c.usable() {
			c.pooled = true
			return c
		}
		p.discard(c)
	}
}

// dial opens a connection. The caller holds a slot.
func (p *peer) dial() (*conn, error) {
	ctx, cancel := context.WithTimeout(p.c.ctx, dialTime)
	defer cancel()
	nc, err := p.c.dial(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	c := newConn(nc, p)
	c.since = time.Now()
	p.c.metrics.Opened.Add(1)
	p.c.metrics.Open.Add(1)
	return c, nil
}

// beginStream exchanges the slot of a connection for a stream slot, so that slow readers do not
// block other requests. It returns false if no stream slot is free.
func (p *peer) beginStream(c *conn) bool {
	select {
	case p.streams <- struct{}{}:
	default:
		return false
	}
	c.streamingSince, c.waited = time.Now(), 0
	p.leave()
	return true
}

// release returns a connection and its slot. If keep is false the connection is closed.
func (p *peer) release(c *conn, keep bool) {
	slots := p.slots
	if !c.streamingSince.IsZero() {
		slots = p.streams
		c.streamingSince = time.Time{}
	}
	if keep {
		p.mu.Lock()
		if keep = p.c.ctx.Err() == nil; keep {
			p.idle = append(p.idle, c)
		}
		p.mu.Unlock()
	}
	if !keep {
		p.discard(c)
	}
	<-slots
}

// discard closes a connection that only the caller uses.
func (p *peer) discard(c *conn) {
	c.keep()
	c.Close() //nolint:errcheck // it is not used any more
	p.c.metrics.Open.Add(-1)
}

// evict closes the connections that have been idle since before.
func (p *peer) evict(before time.Time) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && p.idle[n].since.Before(before) {
		n++
	}
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.mu.Unlock()
	for _, c := range old {
		p.discard(c)
	}
}

// dialer returns a dial function, with TLS if config is not nil.
func dialer(config *tls.Config) func(ctx context.Context, addr string) (net.Conn, error) {
	plain := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	dial := plain.DialContext
	if config != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
	}
	return func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }
}

// failing reports whether the peer is to be asked last. For a failing peer it returns false once
// per retryTime, as a probe.
func (p *peer) failing(now time.Time) bool {
	if time.Duration(p.cost.Load()) <= p.c.tolerated {
		return false
	}
	t, at := int64(now.Sub(p.c.began)), p.retryAt.Load()
	return t < at || !p.retryAt.CompareAndSwap(at, t+int64(retryTime))
}

// observe adds the cost of an attempt to the moving average. Concurrent calls may lose an update,
// which does not matter.
func (p *peer) observe(cost time.Duration, reason error) {
	limit := p.c.tolerated
	old := time.Duration(p.cost.Load())
	if cost < limit/8 && old < limit/8 {
		return // the common case: avoid writing to shared memory
	}
	now := old + (cost-old)/4
	if old > limit && cost <= limit {
		now = cost
	}
	p.set(old, now, reason)
}

// failed records a connection or protocol error.
func (p *peer) failed(reason error) {
	p.set(time.Duration(p.cost.Load()), 4*p.c.tolerated, reason)
}

func (p *peer) set(old, now time.Duration, reason error) {
	limit := p.c.tolerated
	p.cost.Store(int64(now))
	if now > limit {
		p.retryAt.Store(int64(time.Since(p.c.began) + retryTime))
	}
	switch {
	case old <= limit && now > limit:
		p.c.opts.Logger.Warn("a peer is failing and is asked last from now on", "peer", p.addr, "error", reason)
	case old > limit && now <= limit:
		p.c.opts.Logger.Info("a peer that was failing is well again", "peer", p.addr)
	}
}
