package objects

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"sequins/internal/wire"
)

const (
	// idleConnections is the maximum number of idle connections to a server, for readers at full speed.
	idleConnections = 64
	// idleTimeout is how long a connection stays open without a request.
	idleTimeout = 90 * time.Second

	// defaultTimeout is the default of Options.Timeout.
	defaultTimeout = 20 * time.Second
	// defaultRetries is the default of Options.MaxRetries. A load that fails is tried again later.
	defaultRetries = 3

	// firstPause and MaxPause are the maximum pauses after the first failure and after later ones.
	firstPause = 200 * time.Millisecond
	MaxPause   = 10 * time.Second
)

// Options are those of the sources in all stores.
type Options struct {
	// MaxRetries is the number of consecutive retries of a request and of a broken stream. 0 means 3, and a negative number none.
	MaxRetries int

	// Timeout bounds the wait for a silent server. 0 means 20 seconds.
	Timeout time.Duration

	// Dial connects to servers. nil means a net.Dialer with Timeout.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Connections are how a store's client sends requests.
type Connections struct {
	Options // with defaults

	open   sync.Map // of *conn: the client of an SDK does not say which connections it has
	closed atomic.Bool
}

// NewConnections returns connections with these options.
func NewConnections(o Options) *Connections {
	if o.MaxRetries == 0 {
		o.MaxRetries = defaultRetries
	}
	o.MaxRetries = max(0, o.MaxRetries)
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: o.Timeout}).DialContext
	}
	return &Connections{Options: o}
}

// Configure makes a transport use these connections. It uses HTTP/1.1, since parallel parts over one connection would be no
// faster.
func (cs *Connections) Configure(t *http.Transport) {
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := cs.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		tracked := &conn{c, cs}
		cs.open.Store(tracked, nil)
		if cs.closed.Load() { // during the dial, perhaps for a call that has ended
			return nil, errors.Join(net.ErrClosed, tracked.Close())
		}
		return tracked, nil
	}
	t.ForceAttemptHTTP2 = false
	t.TLSHandshakeTimeout = cs.Timeout
	t.MaxIdleConns = 2 * idleConnections
	t.MaxIdleConnsPerHost = idleConnections
}

// Close closes the connections that are open, and there are no new ones. Pending calls and reads fail.
func (cs *Connections) Close() {
	cs.closed.Store(true)
	for c := range cs.open.Range {
		_ = c.(*conn).Close() // only read from
	}
}

// A Client sends requests over Connections, through the proxies of the environment.
type Client struct {
	http    http.Client
	retries int
}

// Client returns a client, which follows no redirects.
func (cs *Connections) Client() *Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: idleTimeout, DisableCompression: true}
	cs.Configure(t)
	return &Client{http.Client{Transport: t, CheckRedirect: wire.NoRedirects}, cs.MaxRetries}
}

// Pipeline returns the options of a pipeline of Azure's SDK, which repeats a request with a temporary error after growing
// random pauses.
func (c *Client) Pipeline() policy.ClientOptions {
	retries := c.retries
	if retries == 0 {
		retries = -1 // 0 means the default
	}
	return policy.ClientOptions{
		Transport: c,
		Retry:     policy.RetryOptions{MaxRetries: int32(min(retries, 1<<30)), RetryDelay: firstPause, MaxRetryDelay: MaxPause},
		Telemetry: policy.TelemetryOptions{ApplicationID: "sequins"},
	}
}

// HTTP returns the client for libraries that need one.
func (c *Client) HTTP() *http.Client { return &c.http }

// Do sends a request. Errors do not contain its URL, which can have a secret. The body of an answer that is parsed, as it is not
// a range of an object, has at most maxAnswer bytes.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(r)
	var told *url.Error
	if errors.As(err, &told) {
		return nil, told.Err
	}
	isRange := r.Header.Get("Range")+r.Header.Get("X-Ms-Range") != "" && err == nil && resp.StatusCode == http.StatusPartialContent
	if err == nil && !isRange {
		resp.Body = LimitAnswer(resp.Body)
	}
	const most = int(MaxPause / time.Second)
	if err == nil { // the SDK does not repeat a request for which it would have to wait longer
		if s, _ := strconv.Atoi(resp.Header.Get("Retry-After")); s > most {
			resp.Header.Set("Retry-After", strconv.Itoa(most))
		}
	}
	return resp, err
}

// conn fails when the other side has been silent for too long. Each read and each
// write restarts the timeout: an idle connection in the pool is being read from.
type conn struct {
	net.Conn
	all *Connections
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.all.Timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.all.Timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.all.open.Delete(c)
	return c.Conn.Close()
}
