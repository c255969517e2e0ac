package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sequins/internal/wire"
	"sequins/observe/status"
)

// NodeOptions are the settings of a Node.
type NodeOptions struct {
	// URL is http:// or https:// and host:port. A user and a password in it are sent if there is no token, as proxies may want
	// them, and not shown.
	URL string
	// Token is sent as a bearer token; "" sends no token.
	Token string
	// TLS is the configuration for https; nil verifies certificates against the roots of the system.
	TLS *tls.Config
	// Silence is how long the node may send nothing. 0 means DefaultSilence.
	Silence time.Duration
}

// DefaultSilence is the default of NodeOptions.Silence.
const DefaultSilence = 10 * time.Second

const (
	// maxStatus limits a status, in bytes. A hundred thousand versions fit.
	maxStatus = 64 << 20
	// maxAnswer limits the answer for several keys, in bytes. The limit of nodes is 64 MiB by default.
	maxAnswer = 1 << 30
	// maxLine limits the part of an error's text that is shown, in bytes.
	maxLine = 200
)

// Node sends requests to one node that somebody has named: for its status, values, ranges of keys, and the differences
// between versions. It differs from Client, which asks whichever node answers first, tries again, and holds values in memory:
// a person who names a node wants to know what that node says, and at once what is wrong if it does not answer. What can be
// passed on is not kept in memory. It is safe for concurrent use.
type Node struct {
	caller
	url, shown string // shown has no user, password and query
	transport  *http.Transport
}

// NewNode returns a client of one node, which the caller must close. It does not connect.
func NewNode(o NodeOptions) *Node {
	setDefault(&o.Silence, DefaultSilence)
	o.URL = strings.TrimRight(o.URL, "/")
	return &Node{caller: caller{o.Token, o.Silence}, url: o.URL, shown: withoutUser(o.URL), transport: newTransport(o.TLS, o.Silence, 0)}
}

// URL returns the URL of the node without user, password and query.
func (c *Node) URL() string { return c.shown }

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
func (c *Node) Close() { c.transport.CloseIdleConnections() }

// get returns the answer to a request, which must be 200. db is the database of the request, "" for none.
func (c *Node) get(ctx context.Context, db string, r request) (*http.Response, error) {
	r.url, r.explain = c.url+r.url, c.brokenOff
	a, err := c.send(ctx, c.transport, &r)
	switch {
	case errors.Is(err, errURL):
		return nil, &NodeError{URL: c.shown, text: "is not the URL of a node"}
	case errors.Is(err, ErrStrange):
		return nil, &NodeError{Kind: ErrStrange, URL: c.shown, text: notSequins, cause: err}
	case err != nil:
		return nil, c.unreachable(ctx, err)
	}
	if a.StatusCode == http.StatusOK {
		return a, nil
	}
	defer a.Body.Close() //nolint:errcheck // it is only read
	return nil, c.refused(a, db)
}

// all reads an answer of at most limit bytes.
func (c *Node) all(a *http.Response, limit int64) ([]byte, error) {
	defer a.Body.Close() //nolint:errcheck // it is only read
	raw, err := io.ReadAll(io.LimitReader(a.Body, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = c.strange(fmt.Sprintf("answers with more than %d bytes", limit))
	}
	return raw, err
}

// getFrames is get for an answer of bytes, preceded by their lengths, which names its version.
func (c *Node) getFrames(ctx context.Context, db string, r request) (*http.Response, error) {
	r.accept = wire.Bytes
	a, err := c.get(ctx, db, r)
	if err != nil {
		return nil, err
	}
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	if a.Header.Get(wire.Version) == "" || media != wire.Bytes {
		return nil, errors.Join(c.strange(notSequins), a.Body.Close())
	}
	return a, nil
}

// Status returns the status of the node.
func (c *Node) Status(ctx context.Context) (st status.Status, err error) {
	a, err := c.get(ctx, "", request{url: "/", accept: "text/plain, application/json;q=0.9"} /* errors as text */)
	if err != nil {
		return st, err
	}
	raw, err := c.all(a, maxStatus)
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(raw, &st); err != nil || st.DBs == nil {
		return st, c.strange(notSequins)
	}
	return st, nil
}

// Stream is the value of a key, which is read while the node sends it.
type Stream struct {
	io.ReadCloser
	// Version is the version that it is from.
	Version string
}

// Get returns the value of a key. The error is of the kind ErrNotFound if the version does not have it.
func (c *Node) Get(ctx context.Context, db string, key []byte, want Want) (*Stream, error) {
	if len(key) == 0 { // has no path of its own
		b, err := c.MultiGet(ctx, db, [][]byte{{}}, want)
		switch {
		case err != nil:
			return nil, err
		case b.Values[0] == nil:
			return nil, c.noKey(db, b.Version)
		}
		return &Stream{io.NopCloser(bytes.NewReader(b.Values[0])), b.Version}, nil
	}
	a, err := c.get(ctx, db, request{url: pathOf(url.PathEscape(db), key), want: want})
	if err != nil {
		return nil, err
	}
	version := a.Header.Get(wire.Version)
	if version == "" {
		return nil, errors.Join(c.strange(notSequins), a.Body.Close())
	}
	return &Stream{a.Body, version}, nil
}

// MultiGet returns the values of several keys, all from one version.
func (c *Node) MultiGet(ctx context.Context, db string, keys [][]byte, want Want) (Batch, error) {
	body, err := encodeBatch(keys)
	if err != nil {
		return Batch{}, err
	}
	a, err := c.getFrames(ctx, db, request{url: "/" + url.PathEscape(db), body: body, want: want})
	if err != nil {
		return Batch{}, err
	}
	data, err := c.all(a, maxAnswer)
	if err != nil {
		return Batch{}, err
	}
	values, err := decodeBatch(data, len(keys), maxAnswer)
	if err != nil {
		return Batch{}, c.strange("does not answer with one value for each key")
	}
	return Batch{Values: values, Version: a.Header.Get(wire.Version)}, nil
}

// notSequins describes an answer that is not one of a node.
const notSequins = "does not answer as sequins does"

// Diff returns the lines of JSON that compare two versions of a db, and with list also each key that differs. The answer may
// take long to begin.
func (c *Node) Diff(ctx context.Context, db, before, after string, list bool) (io.ReadCloser, error) {
	path := "/" + url.PathEscape(db) + "?diff=" + url.QueryEscape(before+".."+after)
	if list {
		path += "&list"
	}
	a, err := c.get(ctx, db, request{url: path, accept: wire.Lines, patient: true})
	if err != nil {
		return nil, err
	}
	return a.Body, nil
}
