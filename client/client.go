package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/names"
	"sequins/internal/wire"
)

// Client reads from the nodes of one cluster. It is safe for concurrent use, and there should be one of it.
type Client struct {
	caller
	opts         Options
	scheme       string
	seeds        []*node
	gets, others http.RoundTripper
	started      time.Time
	late         *lateness // of Get
	lateBatch    *lateness // of MultiGet
	budget       *budget
	calls        atomic.Int64
	attempts     atomic.Int64
	hedged       atomic.Int64
	visits       [zones]atomic.Int64 // attempts by the zone of the node

	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	running sync.WaitGroup // the goroutines of this client

	mu    sync.Mutex // guards the rest, and the end of ctx
	nodes map[string]*node
	dbs   map[string]*database
}

// Value is the value of a key.
type Value struct {
	// Data is the value.
	Data []byte
	// Version is the version of the database that it is from.
	Version string
}

// Batch is the answer of a MultiGet.
type Batch struct {
	// Values are the values of the keys, in their order: nil for a key that is absent, and not nil for an empty
	// value. They share memory.
	Values [][]byte
	// Version is the version of the database that all values are from; empty if there were no keys.
	Version string
}

// Stats counts what a client has done.
type Stats struct {
	// Calls are those of Get and MultiGet, Attempts the requests for keys that they have sent, and Hedged those of
	// them that were sent because another one was late.
	Calls, Attempts, Hedged int64
	// SameZone are the attempts at nodes in Options.Zone, OtherZone those at nodes in other zones. Neither counts attempts at
	// nodes whose zone is not known.
	SameZone, OtherZone int64
}

// MaxKey is the maximum length of a key in bytes.
const MaxKey = wire.MaxKey

// maxDBs is the number of databases that a client remembers. Names that do not exist count. After more, it begins
// again, and requests the maps of those in use.
const maxDBs = 1024

// maxKnown is the number of nodes whose health a client remembers. After more, it begins again.
const maxKnown = 2 * maxNodes

// New returns a client, which the caller must close. It connects to no node yet.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	scheme, seeds, err := o.seeds()
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("client: %w: Options.Token has characters that a header cannot have", ErrInvalid)
	}
	c := &Client{caller: caller{o.Token, o.AttemptTimeout}, opts: o, scheme: scheme, gets: o.Transport, others: o.Transport, started: time.Now(), nodes: map[string]*node{}, dbs: map[string]*database{}}
	if o.Transport == nil {
		c.gets, c.others = newTransport(o.TLS, o.AttemptTimeout, o.MaxConnsPerNode), newTransport(o.TLS, o.AttemptTimeout, o.MaxConnsPerNode)
	}
	for _, addr := range seeds {
		n := c.newNode(addr)
		n.seed = true
		c.seeds = append(c.seeds, n)
		c.nodes[addr] = n
	}
	c.late, c.lateBatch, c.budget = newLateness(o.AttemptTimeout/2), newLateness(o.AttemptTimeout/2), &budget{share: max(o.HedgeBudget, 0)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends all calls with ErrClosed, waits for what runs in the background, and closes all connections. Later calls
// fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.cancel() // nothing starts after that: see spawn
	c.mu.Unlock()
	c.running.Wait()
	for _, t := range []http.RoundTripper{c.gets, c.others} {
		if t, ok := t.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
}

// Get returns the value of a key. The error wraps ErrNotFound if the key is absent, in which case Version is set, or
// one of the other errors of this package, or that of ctx.
func (c *Client) Get(ctx context.Context, db string, key []byte) (Value, error) {
	return c.get(ctx, db, key, "")
}

// MultiGet returns the values of several keys, all from one version of the database. That a key is absent is no error.
// The nodes limit the keys of a batch, by default to 10,000, and the size of its values: the error then wraps
// ErrTooLarge.
func (c *Client) MultiGet(ctx context.Context, db string, keys [][]byte) (Batch, error) {
	return c.multiGet(ctx, db, keys, "")
}

// Stats returns the counts since New.
func (c *Client) Stats() Stats {
	return Stats{Calls: c.calls.Load(), Attempts: c.attempts.Load(), Hedged: c.hedged.Load(), SameZone: c.visits[sameZone].Load(), OtherZone: c.visits[otherZone].Load()}
}

// get is Get from the version atLeast or a later one.
func (c *Client) get(ctx context.Context, db string, key []byte, atLeast string) (Value, error) {
	if len(key) == 0 { // has no path of its own
		return c.getEmpty(ctx, db, atLeast)
	}
	if err := checkKey(key); err != nil {
		return Value{}, err
	}
	d, err := c.database(db)
	if err != nil {
		return Value{}, err
	}
	cl := &call{c: c, d: d, path: pathOf(db, key), request: request{want: Want{AtLeast: atLeast}}, limit: c.opts.MaxValue, late: c.late}
	cl.preferred = func(m *partitions) []int { return m.shuffled(m.of(key)) }
	a, err := cl.run(ctx)
	switch {
	case err != nil:
		return Value{}, err
	case a.status == http.StatusNotFound:
		return Value{Version: a.version}, fmt.Errorf("reading %s: %w in version %s", db, ErrNotFound, a.version)
	}
	return Value{Data: a.data, Version: a.version}, nil
}

// getEmpty is get for the empty key.
func (c *Client) getEmpty(ctx context.Context, db, atLeast string) (Value, error) {
	b, err := c.multiGet(ctx, db, [][]byte{{}}, atLeast)
	switch {
	case err != nil:
		return Value{}, err
	case b.Values[0] == nil:
		return Value{Version: b.Version}, fmt.Errorf("reading %s: %w in version %s", db, ErrNotFound, b.Version)
	}
	return Value{Data: b.Values[0], Version: b.Version}, nil
}

// multiGet is MultiGet from the version atLeast or a later one. All keys are sent to one node, which asks others for
// what it does not hold: one node knows one version of everything, and needs no second round when versions change
// meanwhile.
func (c *Client) multiGet(ctx context.Context, db string, keys [][]byte, atLeast string) (Batch, error) {
	body, err := encodeBatch(keys)
	if err != nil {
		return Batch{}, err
	}
	d, err := c.database(db)
	if err != nil || len(keys) == 0 {
		return Batch{}, err
	}
	limit := c.opts.MaxBatch + 4*int64(len(keys))
	cl := &call{c: c, d: d, path: "/" + db + "/", keys: len(keys), limit: limit, late: c.lateBatch}
	cl.request = request{body: body, accept: wire.Bytes, want: Want{AtLeast: atLeast}}
	cl.preferred = func(m *partitions) []int { return m.ofAll(keys) }
	a, err := cl.run(ctx)
	if err != nil {
		return Batch{}, err
	}
	return Batch{Values: a.values, Version: a.version}, nil
}

func checkKey(key []byte) error {
	if len(key) > MaxKey {
		return fmt.Errorf("%w: a key of %d bytes, and the limit is %d", ErrInvalid, len(key), MaxKey)
	}
	return nil
}

// database returns the state of a db.
func (c *Client) database(name string) (*database, error) {
	if !names.Valid(name) {
		return nil, fmt.Errorf("%w: %.100q is no name of a database", ErrInvalid, name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if d := c.dbs[name]; d != nil {
		return d, nil
	}
	if len(c.dbs) >= maxDBs {
		clear(c.dbs)
	}
	d := &database{c: c, name: name}
	c.dbs[name] = d
	return d, nil
}

// node returns the state of a node.
func (c *Client) node(addr string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[addr]; n != nil {
		return n
	}
	if len(c.nodes) >= maxKnown { // most have left the cluster
		clear(c.nodes)
		for _, seed := range c.seeds {
			c.nodes[seed.addr] = seed
		}
	}
	n := c.newNode(addr)
	c.nodes[addr] = n
	return n
}

// spawn runs f on its own goroutine, for which Close waits. It returns false if the client is closed.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.ctx.Err() == nil
	if open {
		c.running.Go(f)
	}
	return open
}

// now returns the time of the client's clock.
func (c *Client) now() time.Duration { return time.Since(c.started) }
