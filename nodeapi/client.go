// Package nodeapi sends the requests of commands to one node that somebody has named: for its status, values, ranges of
// keys, and the differences between versions. Nothing is kept in memory that can be passed on, and errors say what to do.
//
// It differs from package client, which asks whichever node answers first, retries, and holds values in memory: a person
// who names a node wants to know what that node says, and at once what is wrong if it does not answer.
package nodeapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sequins/status"
)

// Options are the settings of a Client.
type Options struct {
	// URL is http:// or https:// and host:port. A user and a password in it are sent if there is no token, as proxies may want
	// them, and not shown.
	URL string
	// Token is sent as a bearer token; "" if there is none.
	Token string
	// TLS is the configuration for https; nil verifies certificates against the roots of the system.
	TLS *tls.Config
	// Silence is how long the node may send nothing. 0 means DefaultSilence.
	Silence time.Duration
}

// DefaultSilence is the default of Options.Silence.
const DefaultSilence = 10 * time.Second

const (
	// maxStatus limits a status, in bytes. A hundred thousand versions fit.
	maxStatus = 64 << 20
	// maxLine limits the part of an error's text that is shown, in bytes.
	maxLine = 200
)

// Client sends requests to a node. It is safe for concurrent use.
type Client struct {
	opts  Options
	shown string // the URL, as it is shown
	http  *http.Client
}

// New returns a client, which the caller must close. It does not connect.
func New(o Options) *Client {
	if o.Silence <= 0 {
		o.Silence = DefaultSilence
	}
	o.URL = strings.TrimRight(o.URL, "/")
	return &Client{opts: o, shown: withoutUser(o.URL), http: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: o.TLS, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			DialContext: (&net.Dialer{Timeout: o.Silence}).DialContext, TLSHandshakeTimeout: o.Silence,
		},
		// A node redirects nobody, and the token is for this one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// URL returns the URL of the node without user, password and query.
func (c *Client) URL() string { return c.shown }

// withoutUser returns a URL, which need not be valid, without user, password and query.
func withoutUser(base string) string {
	scheme, rest, ok := strings.Cut(base, "://")
	if !ok {
		return base
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	return scheme + "://" + rest
}

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is a request to the node.
type request struct {
	path    string // escaped, with its query
	accept  string
	body    io.Reader // not nil: POST of bytes
	want    Want
	patient bool // the answer may take any time
}

// Want is the version that an answer must be from; the zero value is any.
type Want struct {
	// AtLeast is the oldest version, Version the only one; "" for any.
	AtLeast, Version string
}

// answer is an answer whose body is read while the node sends it.
type answer struct {
	status int
	header http.Header
	body   *body
}

// body is the body of an answer. Reading it fails when the node sends nothing for Options.Silence.
type body struct {
	io.ReadCloser
	client *Client
	watch  *time.Timer // nil for a request that is patient
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.watch != nil {
		b.watch.Reset(b.client.opts.Silence)
	}
	if err != nil && err != io.EOF {
		err = b.client.brokenOff(b.ctx, err)
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.cancel(nil)
	if b.watch != nil {
		b.watch.Stop()
	}
	return b.ReadCloser.Close()
}

// do sends a request and returns the answer, whatever its status. Its body must be closed.
func (c *Client) do(ctx context.Context, r request) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := c.newRequest(ctx, r)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	var watch *time.Timer
	if !r.patient {
		watch = time.AfterFunc(c.opts.Silence, func() { cancel(errSilent) })
	}
	resp, err := c.http.Do(req) //nolint:bodyclose // the caller closes it
	if err != nil {
		err = c.unreachable(ctx, err)
		if watch != nil {
			watch.Stop()
		}
		cancel(nil)
		return nil, err
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: &body{resp.Body, c, watch, ctx, cancel}}, nil
}

func (c *Client) newRequest(ctx context.Context, r request) (*http.Request, error) {
	method := http.MethodGet
	if r.body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.opts.URL+r.path, r.body)
	if err != nil {
		return nil, &Error{Kind: Refused, URL: c.shown, text: "is not the URL of a node"} // err has the whole URL
	}
	set := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	set("Accept", r.accept)
	set("X-Sequins-At-Least", r.want.AtLeast)
	set("X-Sequins-Version", r.want.Version)
	if r.body != nil {
		set("Content-Type", octets)
	}
	if c.opts.Token != "" {
		set("Authorization", "Bearer "+c.opts.Token)
	}
	return req, nil
}

const octets = "application/octet-stream"

// get is do for an answer that must be 200. db is the database of the request, "" for none.
func (c *Client) get(ctx context.Context, db string, r request) (*answer, error) {
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusOK {
		return a, nil
	}
	defer a.body.Close() //nolint:errcheck // it is only read
	return nil, c.refused(a, db)
}

// Status returns the status of the node and, as it was sent, its JSON.
func (c *Client) Status(ctx context.Context) (st status.Status, raw []byte, err error) {
	a, err := c.get(ctx, "", request{path: "/", accept: "text/plain, application/json;q=0.9"} /* errors as text */)
	if err != nil {
		return st, nil, err
	}
	defer a.body.Close() //nolint:errcheck // it is only read
	raw, err = io.ReadAll(io.LimitReader(a.body, maxStatus+1))
	switch {
	case err != nil:
		return st, nil, err
	case len(raw) > maxStatus:
		return st, nil, &Error{Kind: Strange, URL: c.shown, text: fmt.Sprintf("answers with more than %d bytes", maxStatus)}
	}
	if err := json.Unmarshal(raw, &st); err != nil || st.DBs == nil {
		return st, nil, &Error{Kind: Strange, URL: c.shown, text: notSequins}
	}
	return st, raw, nil
}

// notSequins describes an answer that is not one of a node.
const notSequins = "does not answer as sequins does"

// Diff returns the lines of JSON that compare two versions of a db, and with list also each key that differs. The answer may
// take long to begin.
func (c *Client) Diff(ctx context.Context, db, before, after string, list bool) (io.ReadCloser, error) {
	path := "/" + url.PathEscape(db) + "?diff=" + url.QueryEscape(before+".."+after)
	if list {
		path += "&list"
	}
	a, err := c.get(ctx, db, request{path: path, accept: "application/x-ndjson", patient: true})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
