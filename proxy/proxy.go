package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"sequins/observe/metrics"
)

// ErrNoPeers means that no peer gave a usable answer and none is left to try.
var ErrNoPeers = errors.New("no peer could answer")

// ErrAbsent is also wrapped by an error of Fetch if a peer does not have the version, or a partition that was asked for.
var ErrAbsent = errors.New("it does not have the version or the partition")

var errClosed = errors.New("the proxy is closed")

// Options are the settings of a Client. TLS and Zones may be zero.
type Options struct {
	// Timeout bounds a Fetch: until a small answer is complete, or until the first 68 KiB of a
	// large one have arrived.
	Timeout time.Duration
	// StageTimeout is the time after which Fetch also asks another peer.
	StageTimeout time.Duration
	// TLS enables TLS to peers. Without a ServerName, a certificate must be valid for the host of
	// the peer's address.
	TLS *tls.Config
	// Zones are the zones of peers: those in the zone of this node are asked first.
	Zones Zones
	// Upstream reports whether a node may be of upstream's kind, whose answers do not name a content.
	Upstream func(addr string) bool
	// Metrics counts attempts and connections.
	Metrics *metrics.Proxy
	// Logger logs when a peer starts failing and when it recovers.
	Logger *slog.Logger
}

// Client fetches keys from peers. It is safe for concurrent use.
type Client struct {
	opts      Options
	metrics   *metrics.Proxy
	dial      func(ctx context.Context, addr string) (net.Conn, error)
	stage     time.Duration // min(StageTimeout, Timeout)
	tolerated time.Duration // a peer whose cost is higher is failing
	began     time.Time

	maxConns, maxStreams int // peerConns and peerStreams, or fewer in tests

	ctx    context.Context // canceled by Close
	cancel context.CancelFunc

	peers   atomic.Pointer[map[string]*peer]
	mu      sync.Mutex     // guards changes to peers, and the end of ctx
	running sync.WaitGroup // the goroutines of this client
}

// New returns a client, which the caller must close.
func New(o Options) *Client { return newClient(o, dialer(o.TLS)) }

// newClient is New with a custom dial function.
func newClient(o Options, dial func(ctx context.Context, addr string) (net.Conn, error)) *Client {
	c := &Client{opts: o, metrics: o.Metrics, dial: dial, began: time.Now(), maxConns: peerConns, maxStreams: peerStreams}
	c.stage = min(o.StageTimeout, o.Timeout)
	c.tolerated = c.stage / 2
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.peers.Store(&map[string]*peer{})
	c.running.Go(c.evictLoop)
	return c
}

// Close closes all connections, those of answers being read in the background, and waits for all
// goroutines. Every later Fetch fails.
func (c *Client) Close() {
	c.mu.Lock()
	c.cancel()
	peers := *c.peers.Load()
	c.peers.Store(&map[string]*peer{})
	c.mu.Unlock()
	for _, p := range peers {
		p.evict(time.Now().Add(idleTime)) // all
	}
	c.running.Wait()
}

// start runs f on its own goroutine. It returns false if the client is closed.
func (c *Client) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.ctx.Err() == nil
	if open {
		c.running.Go(f)
	}
	return open
}

// peer returns the peer with an address, creating it if necessary, or nil if the client is closed.
func (c *Client) peer(addr string) *peer {
	if p := (*c.peers.Load())[addr]; p != nil {
		return p
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.peers.Load()
	if p := old[addr]; p != nil || c.ctx.Err() != nil {
		return p
	}
	table := maps.Clone(old)
	p := newPeer(c, addr)
	table[addr] = p
	c.peers.Store(&table)
	return p
}

// evictLoop periodically closes connections that have been idle for too long.
func (c *Client) evictLoop() {
	tick := time.NewTicker(idleTime / 4)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-tick.C:
			for _, p := range *c.peers.Load() {
				p.evict(now.Add(-idleTime))
			}
		}
	}
}

// Fetch asks the peers of q until one gives a usable answer: status 200, 206, 304, 404, 412, 413 or 416,
// from the requested version. It does not use q after it returns.
//
// The error wraps context.DeadlineExceeded if Options.Timeout expired, the error of ctx if ctx
// ended, and otherwise ErrNoPeers, also ErrAbsent; it lists the failed attempts. ctx is not checked while the first
// attempt runs on the caller's goroutine, and does not end an answer that Fetch has returned.
func (c *Client) Fetch(ctx context.Context, q *Query) (*Answer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking peers: %w", err)
	}
	r := &race{c: c, q: *q, began: time.Now()}
	r.rest = append(r.few[:0], q.Peers...)
	r.first = c.opts.Zones.nearLast(r.rest)
	r.q.Scale = max(1, q.Scale)
	r.stage, r.deadline = time.Duration(min(r.q.Scale, maxStageScale))*c.stage, r.began.Add(time.Duration(r.q.Scale)*c.opts.Timeout)
	return r.begin(ctx)
}
