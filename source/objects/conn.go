package objects

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
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

// Options are those of the sources in all stores, and how their clients send requests.
type Options struct {
	// MaxRetries is the number of consecutive retries of a request and of a broken stream. 0 means 3, and a negative number none.
	MaxRetries int

	// Timeout bounds the wait for a silent server. 0 means 20 seconds.
	Timeout time.Duration

	// Dial connects to servers. nil means a net.Dialer with Timeout.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Retries returns the number of retries.
func (o *Options) Retries() int { return max(0, cmp.Or(o.MaxRetries, defaultRetries)) }

// Configure makes a transport connect as the options say. It uses HTTP/1.1, since parallel parts over one connection would be no
// faster.
func (o *Options) Configure(t *http.Transport) {
	timeout, dial := cmp.Or(o.Timeout, defaultTimeout), o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: timeout}).DialContext
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{c, timeout}, nil
	}
	t.ForceAttemptHTTP2 = false
	t.TLSHandshakeTimeout = timeout
	t.MaxIdleConns = 2 * idleConnections
	t.MaxIdleConnsPerHost = idleConnections
}

// A Client sends requests through the proxies of the environment.
type Client struct {
	http    http.Client
	retries int
}

// Client returns a client, which follows no redirects.
func (o *Options) Client() *Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: idleTimeout, DisableCompression: true}
	o.Configure(t)
	return &Client{http.Client{Transport: t, CheckRedirect: wire.NoRedirects}, o.Retries()}
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
	if err != nil {
		return nil, errors.Unwrap(err) // of a url.Error, as all errors of Do are
	}
	isRange := r.Header.Get("Range")+r.Header.Get("X-Ms-Range") != "" && resp.StatusCode == http.StatusPartialContent
	if !isRange {
		resp.Body = LimitAnswer(resp.Body)
	}
	const most = int(MaxPause / time.Second) // the SDK does not repeat a request for which it would have to wait longer
	if s, _ := strconv.Atoi(resp.Header.Get("Retry-After")); s > most {
		resp.Header.Set("Retry-After", strconv.Itoa(most))
	}
	return resp, nil
}

// conn fails when the other side has been silent for too long. Each read and each
// write restarts the timeout: an idle connection in the pool is being read from.
type conn struct {
	net.Conn
	timeout time.Duration
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
