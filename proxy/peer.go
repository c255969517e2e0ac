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

// peer is what is kept of one node between requests: its connections, and how
// it has done.
type peer struct {
	addr string
	c    *Client

	// slots has one entry for each connection that an attempt uses, streams one
	// for each that a body is streamed from. As a connection is opened only if
	// none is idle, no more than their capacities together are ever open.
	slots, streams chan struct{}

	mu   sync.Mutex
	idle []*conn            // the one used last is the last
	open map[*conn]struct{} // all, in use or not; nil when the client is closed
	gone bool               // forgotten: nothing is kept any more
	used time.Time          // last

	// cost is about what an attempt takes lately, in nanoseconds, where one that
	// fails counts as a stage's time: see observe. From a limit on the peer
	// counts as failing, and is tried first once after retryAt only.
	cost    atomic.Int64
	retryAt atomic.Int64 // nanoseconds since Client.began
}

const (
	// idleTime is less than the two minutes after which a node closes its side.
	idleTime = time.Minute
	// forgetTime is how long a peer is remembered that nobody asks.
	forgetTime = 10 * time.Minute
	// retryTime is how often a failing peer is tried before those that are well.
	retryTime = time.Second
	// dialTime bounds the opening of a connection. It is not the time of a
	// request, so that a slow handshake is not begun again and again.
	dialTime = 5 * time.Second
)

func newPeer(c *Client, addr string) *peer {
	return &peer{
		addr:  addr,
		c:     c,
		slots: make(chan struct{}, c.opts.MaxConnsPerPeer), streams: make(chan struct{}, c.opts.MaxStreamsPerPeer),
		open: make(map[*conn]struct{}),
	}
}

// tryTake takes a slot and an idle connection, if there are both at once.
func (p *peer) tryTake(now time.Time) *conn {
	select {
	case p.slots <- struct{}{}:
	default:
		return nil
	}
	c := p.take(now)
	if c == nil {
		p.leave()
	}
	return c
}

func (p *peer) leave() { <-p.slots }

// take returns an idle connection, nil if there is none. The caller has a slot.
func (p *peer) take(now time.Time) *conn {
	for {
		p.mu.Lock()
		p.used = now
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

// dial opens a connection. The caller has a slot.
func (p *peer) dial() (*conn, error) {
	ctx, cancel := context.WithTimeout(p.c.ctx, dialTime)
	defer cancel()
	nc, err := p.c.dial(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	c := newConn(nc, p)
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		nc.Close() //nolint:errcheck // nothing was sent on it
		return nil, errClosed
	}
	p.c.metrics.Opened()
	p.open[c] = struct{}{}
	return c, nil
}

// beginStream exchanges a connection's slot for one of those for streamed bodies,
// so that clients who read slowly keep nobody else from asking. It returns false
// if there is none.
func (p *peer) beginStream(c *conn) bool {
	select {
	case p.streams <- struct{}{}:
	default:
		return false
	}
	c.streamingSince = time.Now()
	p.leave()
	return true
}

// release takes a connection back, and its slot.
func (p *peer) release(c *conn, keep bool) {
	slots := p.slots
	if !c.streamingSince.IsZero() {
		slots = p.streams
		c.streamingSince = time.Time{}
	}
	if keep {
		p.mu.Lock()
		if keep = !p.gone; keep {
			p.idle = append(p.idle, c)
		}
		p.mu.Unlock()
	}
	if !keep {
		p.discard(c)
	}
	<-slots
}

// discard closes a connection that is in nobody's hands but the caller's.
func (p *peer) discard(c *conn) {
	p.mu.Lock()
	_, open := p.open[c]
	delete(p.open, c)
	p.mu.Unlock()
	if open {
		p.c.metrics.Closed()
		c.Close() //nolint:errcheck // it is not used any more
	}
}

// evict takes those out that have been idle since before a time; they are to be
// closed. If nobody has used the peer since another, it is gone.
func (p *peer) evict(before, forget time.Time) (old []*conn, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && p.idle[n].since.Before(before) {
		n++
	}
	old = slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.gone = p.gone || len(p.open) == 0 && len(p.slots)+len(p.streams) == 0 && p.used.Before(forget)
	return old, p.gone
}

// close cuts every connection, also those in use.
func (p *peer) close() {
	p.mu.Lock()
	p.gone = true
	open := p.open
	p.open, p.idle = nil, nil
	p.mu.Unlock()
	for c := range open {
		p.c.metrics.Closed()
		c.Close() //nolint:errcheck // it is not used any more
	}
}

// dialer opens connections, with TLS if there is a configuration for it.
func dialer(config *tls.Config) func(ctx context.Context, addr string) (net.Conn, error) {
	plain := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	if config == nil {
		return func(ctx context.Context, addr string) (net.Conn, error) { return plain.DialContext(ctx, "tcp", addr) }
	}
	secure := &tls.Dialer{NetDialer: plain, Config: config}
	return func(ctx context.Context, addr string) (net.Conn, error) { return secure.DialContext(ctx, "tcp", addr) }
}

// failing says whether others are to be asked first. Of a peer that is, it says
// once in retryTime that it is not, to find out.
func (p *peer) failing(now time.Time) bool {
	if time.Duration(p.cost.Load()) <= p.c.tolerated {
		return false
	}
	t, at := int64(now.Sub(p.c.began)), p.retryAt.Load()
	return t < at || !p.retryAt.CompareAndSwap(at, t+int64(retryTime))
}

// observe takes up what one attempt has cost. Several at a time may lose one:
// that does not matter.
func (p *peer) observe(cost time.Duration, reason error) {
	limit := p.c.tolerated
	old := time.Duration(p.cost.Load())
	if cost < limit/8 && old < limit/8 {
		return // as nearly always: not worth a write to memory that others read
	}
	now := old + (cost-old)/4
	if old > limit && cost <= limit {
		now = cost
	}
	p.set(old, now, reason)
}

// failed takes up that there is no talking to the peer.
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
		p.c.logger.Warn("a peer is failing and is asked last from now on", "peer", p.addr, "error", reason)
	case old > limit && now <= limit:
		p.c.logger.Info("a peer that was failing is well again", "peer", p.addr)
	}
}
