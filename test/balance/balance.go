// Package balance is a client of several nodes that acts like a load balancer: it requests /readyz from each
// node, sends GETs at a steady rate to the ready ones in turn, and repeats none.
//
// The load is an open loop: requests are due at fixed times, and a request's time counts from when it was due. So
// a node that stops for a second is late for all requests of that second.
package balance

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options describe a load.
type Options struct {
	Addrs  []string      // host:port of each node
	Rate   float64       // requests a second
	Probe  time.Duration // between two looks at a node's /readyz
	Target func(n int) string
	// Check returns an error if the answer to request n, a 200 or a 404, is wrong.
	Check func(n int, a Answer) error
}

// An Answer is a complete response.
type Answer struct {
	Node   int           // index into Options.Addrs
	Sent   time.Duration // since the beginning of the load
	Code   int
	Header http.Header
	Body   []byte
}

// A Request is one GET and what became of it. Times count from the beginning of the load.
type Request struct {
	Due, Sent, End time.Duration
	Node           int   // index into Options.Addrs; -1: no node was ready
	Code           int   // 0: no answer
	Wrong          bool  // Options.Check refused the answer
	Err            error // why it failed; nil: it did not
}

// errNoneReady is the failure of a request that no node was there for.
var errNoneReady = errors.New("no node is ready")

// requestTimeout is when a request that has no answer has failed.
const requestTimeout = 10 * time.Second

// Client is a running load.
type Client struct {
	o     Options
	begin time.Time
	pools []*pool
	turn  int // of the node that is asked next
	stop  chan struct{}
	work  sync.WaitGroup

	mu       sync.Mutex
	requests []Request
}

// Start checks each node once and begins a load. Stop must be called.
func Start(o Options) *Client {
	c := &Client{o: o, stop: make(chan struct{})}
	for _, addr := range o.Addrs {
		p := &pool{addr: addr}
		p.probe()
		c.pools = append(c.pools, p)
		c.work.Go(func() { c.watch(p) })
	}
	c.begin = time.Now()
	c.work.Go(c.send)
	return c
}

// Now is the time since the beginning of the load.
func (c *Client) Now() time.Duration { return time.Since(c.begin) }

// Stop ends the load and returns all requests, after the last has been answered or has failed.
func (c *Client) Stop() []Request {
	close(c.stop)
	c.work.Wait()
	for _, p := range c.pools {
		p.close()
	}
	return c.requests
}

// Ready reports whether a node was ready when it was last asked.
func (c *Client) Ready(node int) bool { return c.pools[node].ready.Load() }

// watch asks a node for /readyz until the end.
func (c *Client) watch(p *pool) {
	tick := time.NewTicker(c.o.Probe)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			p.probe()
		}
	}
}

// send sends each request when it is due.
func (c *Client) send() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		due := time.Duration(float64(n) * float64(time.Second) / c.o.Rate)
		timer.Reset(due - c.Now())
		select {
		case <-c.stop:
			return
		case <-timer.C:
			node := c.pick()
			c.work.Go(func() { c.note(c.one(n, node, due)) })
		}
	}
}

// pick returns the next node that is ready, or -1.
func (c *Client) pick() int {
	for range c.pools {
		c.turn = (c.turn + 1) % len(c.pools)
		if c.Ready(c.turn) {
			return c.turn
		}
	}
	return -1
}

func (c *Client) note(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
}

// one sends request n to a node and looks at the answer.
func (c *Client) one(n, node int, due time.Duration) Request {
	r := Request{Due: due, Sent: c.Now(), Node: node}
	if node < 0 {
		r.End, r.Err = r.Sent, errNoneReady
		return r
	}
	a, err := c.pools[node].get(c.o.Target(n))
	r.End = c.Now()
	switch a.Node, a.Sent = node, r.Sent; {
	case err != nil:
		r.Err = err
		return r
	case a.Code == http.StatusOK, a.Code == http.StatusNotFound:
		r.Err = c.o.Check(n, a)
		r.Wrong = r.Err != nil
	default:
		r.Err = fmt.Errorf("%d: %.100s", a.Code, a.Body)
	}
	r.Code = a.Code
	return r
}

// pool is the state of a node, with its idle connections.
type pool struct {
	addr  string
	ready atomic.Bool

	mu   sync.Mutex
	idle []*conn
}

// probe asks the node for /readyz over a connection of its own.
func (p *pool) probe() {
	c, err := dial(p.addr)
	if err != nil {
		p.ready.Store(false)
		return
	}
	defer c.Close()
	a, _, err := c.get("/readyz")
	p.ready.Store(err == nil && a.Code == http.StatusOK)
}

// get sends one request, over a connection that waits or a new one.
func (p *pool) get(target string) (Answer, error) {
	c := p.take()
	if c == nil {
		var err error
		if c, err = dial(p.addr); err != nil {
			return Answer{}, err
		}
	}
	a, last, err := c.get(target)
	if err != nil || last {
		c.Close()
	} else {
		p.put(c)
	}
	return a, err
}

// take returns a connection that waits and that the node has not closed, or nil.
func (p *pool) take() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.open() {
			return c
		}
		c.Close()
	}
	return nil
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

func (p *pool) close() {
	for _, c := range p.idle {
		c.Close()
	}
}
