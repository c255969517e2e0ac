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

	"sequins/metrics"
)

// ErrNoPeers says that no peer has given a usable answer, and none is left that
// could be asked.
var ErrNoPeers = errors.New("no peer could answer")

var errClosed = errors.New("the proxy is closed")

// Options are the settings of a Client. The zero value works.
type Options struct {
	// Timeout bounds a Fetch, up to the first 68 KiB of a large answer and to the
	// end of a small one. 0: 100ms.
	Timeout time.Duration
	// StageTimeout is the time after which another peer is asked, too. 0: half
	// of Timeout.
	StageTimeout time.Duration
	// TLS is spoken to peers; nil: not. Without a ServerName, certificates have
	// to be for the host of the peer's address.
	TLS *tls.Config
	// MaxConnsPerPeer bounds the connections to one peer that attempts use; an
	// attempt waits for one while its race lasts. 0: 512.
	MaxConnsPerPeer int
	// MaxStreamsPerPeer bounds the connections to one peer that values of more
	// than 64 KiB are being read from. Beyond it such a value is asked of another
	// peer. 0: 512.
	MaxStreamsPerPeer int
	// Metrics counts; nil: for nobody.
	Metrics *metrics.Proxy
	// Logger is told when a peer begins to fail, and when it is well again; nil:
	// slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 100 * time.Millisecond
	}
	if o.StageTimeout <= 0 {
		o.StageTimeout = o.Timeout / 2
	}
	if o.MaxConnsPerPeer <= 0 {
		o.MaxConnsPerPeer = 512
	}
	if o.MaxStreamsPerPeer <= 0 {
		o.MaxStreamsPerPeer = 512
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New().Proxy
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Client asks peers. It is safe for concurrent use.
type Client struct {
	opts      Options
	metrics   *metrics.Proxy
	logger    *slog.Logger
	dial      func(ctx context.Context, addr string) (net.Conn, error)
	stage     time.Duration // the time of one
	slack     time.Duration // of a stage's time
	tolerated time.Duration // the cost from which on a peer is failing
	began     time.Time

	ctx    context.Context // ended by Close
	cancel context.CancelFunc

	peers   atomic.Pointer[map[string]*peer]
	mu      sync.Mutex // of changes to peers, and of what follows
	closed  bool
	running sync.WaitGroup // the goroutines of this client
}

// New returns a client that is to be closed.
func New(o Options) *Client { return newClient(o, nil) }

// newClient is New with another way to open connections.
func newClient(o Options, dial func(ctx context.Context, addr string) (net.Conn, error)) *Client {
	o = o.withDefaults()
	c := &Client{opts: o, metrics: o.Metrics, logger: o.Logger, dial: dial, began: time.Now()}
	if c.dial == nil {
		c.dial = dialer(o.TLS)
	}
	c.stage = min(o.StageTimeout, o.Timeout)
	c.slack, c.tolerated = c.stage/10, c.stage/2
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.peers.Store(&map[string]*peer{})
	c.running.Go(c.keepHouse)
	return c
}

// Close cuts all connections, also those that an answer is still read from, and
// waits for what runs. Every Fetch from now on fails.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	peers := *c.peers.Load()
	c.peers.Store(&map[string]*peer{})
	c.mu.Unlock()
	c.cancel()
	for _, p := range peers {
		p.close()
	}
	c.running.Wait()
}

// start runs f beside the caller. It returns false if the client is closed.
func (c *Client) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f)
	}
	return !c.closed
}

// peer finds what is known of an address, nil if the client is closed.
func (c *Client) peer(addr string) *peer {
	if p := (*c.peers.Load())[addr]; p != nil {
		return p
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.peers.Load()
	if p := old[addr]; p != nil || c.closed {
		return p
	}
	table := maps.Clone(old)
	p := newPeer(c, addr)
	table[addr] = p
	c.peers.Store(&table)
	return p
}

// keepHouse closes what has been idle for too long, and forgets peers that are
// not asked any more: those that have left the cluster.
func (c *Client) keepHouse() {
	tick := time.NewTicker(idleTime / 4)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-tick.C:
			c.evict(now)
		}
	}
}

func (c *Client) evict(now time.Time) {
	for _, p := range c.evicted(now) {
		p.peer.discard(p)
	}
}

// evicted takes peers out that are forgotten, and returns the connections that
// are to be closed.
func (c *Client) evicted(now time.Time) (all []*conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	table := maps.Clone(*c.peers.Load())
	for addr, p := range table {
		old, gone := p.evict(now.Add(-idleTime), now.Add(-forgetTime))
		all = append(all, old...)
		if gone {
			delete(table, addr)
		}
	}
	c.peers.Store(&table)
	return all
}

// Fetch asks the peers of a query until one has given a usable answer: one with
// status 200, 206, 304, 404, 412 or 416, from the version that was asked for.
// It does not use q any more once it has returned.
//
// An error is context.DeadlineExceeded (errors.Is) where Options.Timeout has
// passed, that of ctx where ctx has ended, and otherwise ErrNoPeers; they name
// the peers. ctx is looked at between stages only, and ends no answer that
// Fetch has returned.
func (c *Client) Fetch(ctx context.Context, q *Query) (*Answer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking peers: %w", err)
	}
	r := &race{c: c, q: q, version: q.Version, head: q.Head, began: time.Now()}
	r.rest = append(r.few[:0], q.Peers...)
	r.deadline = r.began.Add(c.opts.Timeout)
	return r.begin(ctx)
}
