package objects

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// idleConnections is the maximum number of idle connections to a server, for readers at full speed.
	idleConnections = 64
	// idleTimeout is how long a connection stays open without a request.
	idleTimeout = 90 * time.Second
)

// Connections makes the connections of a store's client, and tracks them to close them: SDKs do not expose their idle ones.
type Connections struct {
	timeout time.Duration // maximum silence
	connect func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool // no new connections
}

// NewConnections returns connections that fail if the other side is silent for timeout, which is DefaultTimeout if it is 0. dial
// connects; nil means a net.Dialer.
func NewConnections(timeout time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Connections {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: timeout}).DialContext
	}
	return &Connections{timeout: timeout, connect: dial, open: map[*conn]struct{}{}}
}

// Configure makes a transport use these connections. It uses HTTP/1.1, since parallel parts over one connection would be no
// faster.
func (cs *Connections) Configure(t *http.Transport) {
	t.DialContext = cs.dial
	t.ForceAttemptHTTP2 = false
	t.TLSHandshakeTimeout = cs.timeout
	t.MaxIdleConns = 2 * idleConnections
	t.MaxIdleConnsPerHost = idleConnections
}

// A Client sends requests over Connections, through the proxies of the environment.
type Client struct{ http http.Client }

// Client returns a client. It follows no redirects: those who may name other servers are not those that answer.
func (cs *Connections) Client() *Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: idleTimeout, DisableCompression: true}
	cs.Configure(t)
	return &Client{http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// HTTP returns the client for libraries that need one.
func (c *Client) HTTP() *http.Client { return &c.http }

// Do sends a request. Errors do not contain its URL, which can have a secret. The body of an answer to a request without the
// header Range has at most MaxAnswer bytes.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(r)
	var told *url.Error
	if errors.As(err, &told) {
		return nil, told.Err
	}
	if err == nil && r.Header.Get("Range") == "" && r.Header.Get("X-Ms-Range") == "" {
		resp.Body = LimitAnswer(resp.Body)
	}
	return resp, err
}

func (cs *Connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := cs.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tracked := &conn{Conn: c, all: cs}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed { // closed during the dial, perhaps for a call that has ended
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	cs.open[tracked] = struct{}{}
	return tracked, nil
}

// Close closes all connections. There are no new ones.
func (cs *Connections) Close() {
	cs.mu.Lock()
	open := cs.open
	cs.open, cs.closed = map[*conn]struct{}{}, true
	cs.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close() // only read from
	}
}

// conn fails when the other side has been silent for too long. Each read and each
// write restarts the timeout: an idle connection in the pool is being read from.
type conn struct {
	net.Conn
	all *Connections
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.all.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.all.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
