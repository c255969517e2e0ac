package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Header fields of requests and answers.
const (
	keyVersion = "X-Sequins-Version"
	keyAtLeast = "X-Sequins-At-Least"
)

// binary is the media type of requests and answers of MultiGet.
const binary = "application/octet-stream"

var userAgent = []string{"sequins-go"}

// request is what is sent to one node.
type request struct {
	node    *node
	path    string // escaped, with its query
	body    []byte // not nil: POST
	atLeast string
	limit   int64  // of the body of the answer, in bytes
	sent    func() // called when there is a connection for it; may be nil
	began   func() // called when the node begins to answer; may be nil
}

// reply is an answer as received.
type reply struct {
	status     int
	version    string // "" if there is none or it is no valid name
	media      string // its Content-Type
	retryAfter time.Duration
	body       []byte
}

// maxText limits the body of answers other than 200, which are one line of text.
const maxText = 1 << 10

// send sends a request when a connection is free, and returns the complete answer. It gives up after AttemptTimeout without any
// bytes from the node.
func (c *Client) send(ctx context.Context, r *request) (*reply, error) {
	release, err := c.acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	defer release()
	if r.sent != nil {
		r.sent()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := c.opts.AttemptTimeout
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing received for %v", silence)) })
	defer watch.Stop()
	resp, err := c.transportFor(r).RoundTrip(c.newRequest(ctx, r))
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if r.began != nil {
		r.began()
	}
	a := &reply{status: resp.StatusCode, media: resp.Header.Get("Content-Type"), retryAfter: retryAfter(resp.Header)}
	if v := resp.Header.Get(keyVersion); validName(v) {
		a.version = v
	}
	if err := checkFraming(resp); err != nil {
		return nil, err
	}
	body := &watched{Reader: resp.Body, watch: watch, silence: silence}
	if a.status != http.StatusOK {
		a.body, _ = io.ReadAll(io.LimitReader(body, maxText)) // a part of the text will do
		return a, nil
	}
	if a.body, err = readAll(body, resp.ContentLength, r.limit); err != nil {
		return nil, causeOf(ctx, err)
	}
	return a, nil
}

// causeOf returns the reason for which ctx was canceled instead of the error that this caused.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// newRequest renders a request. It cannot fail: the parts of the URL were checked before.
func (c *Client) newRequest(ctx context.Context, r *request) *http.Request {
	escaped, query, _ := strings.Cut(r.path, "?")
	path, _ := url.PathUnescape(escaped) //nolint:errcheck // pathOf has escaped it
	req := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Scheme: c.scheme, Host: r.node.addr, Path: path, RawPath: escaped, RawQuery: query}, Host: r.node.addr,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header, 4),
	}
	req.Header["User-Agent"] = userAgent
	if c.authorization != "" {
		req.Header["Authorization"] = []string{c.authorization}
	}
	if r.atLeast != "" {
		req.Header[keyAtLeast] = []string{r.atLeast}
	}
	if r.body != nil {
		req.Method, req.ContentLength = http.MethodPost, int64(len(r.body))
		req.Header["Content-Type"], req.Header["Accept"] = []string{binary}, []string{binary}
		req.Header["Idempotency-Key"] = nil // not sent; makes the transport repeat it if an idle connection was closed
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
		req.Body, _ = req.GetBody() //nolint:errcheck // it returns none
	}
	return req.WithContext(ctx)
}

// transportFor returns the connections for a request. A node answers GETs of keys faster on connections that have had
// no other requests.
func (c *Client) transportFor(r *request) http.RoundTripper {
	if r.getsKey() {
		return c.gets
	}
	return c.others
}

// getsKey reports whether the request is the GET of a key.
func (r *request) getsKey() bool { return r.body == nil && !strings.Contains(r.path, "?") }

// errNoConnection is the error for a request that was not sent, because all connections to the node were in use.
var errNoConnection = errors.New("all connections to the node are in use")

// acquire waits until one of MaxConnsPerNode connections is free, which it is again after release. The transport has the same
// limit; waiting there could not be told from waiting for the node.
func (c *Client) acquire(ctx context.Context, r *request) (release func(), err error) {
	slots := r.node.others
	if r.getsKey() {
		slots = r.node.gets
	}
	if slots == nil { // Options.Transport has limits of its own
		return func() {}, nil
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errNoConnection, ctx.Err())
	}
}

// checkFraming rejects answers whose end cannot be told from a broken connection, and those with a coding that was
// not requested.
func checkFraming(resp *http.Response) error {
	if resp.ContentLength < 0 && resp.ProtoMajor == 1 && len(resp.TransferEncoding) == 0 && resp.StatusCode == http.StatusOK {
		return errors.New("the answer has no length")
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return fmt.Errorf("the answer has the coding %.100q", coding)
	}
	return nil
}

// watched is a body that postpones the end of its request whenever something arrives.
type watched struct {
	io.Reader
	watch   *time.Timer
	silence time.Duration
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.watch.Reset(w.silence)
	}
	return n, err
}

// readAll reads a body of at most limit bytes. length is what the header says, or -1. Memory grows with what arrives.
func readAll(r io.Reader, length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, fmt.Errorf("%w: the answer has %d bytes, and the client's limit is %d", ErrTooLarge, length, limit)
	}
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), mebibyte)) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%w: the answer is larger than the client's limit of %d bytes", ErrTooLarge, limit)
	}
	return b.Bytes(), nil
}

// The bounds of the pause before another round of attempts.
const (
	minRetry = 50 * time.Millisecond
	maxRetry = time.Second
)

// retryAfter returns the seconds of Retry-After within these bounds.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 2 * minRetry
	}
	return min(max(time.Duration(seconds)*time.Second, minRetry), maxRetry)
}

// refusal returns the error for an answer without a result.
func (a *reply) refusal() error {
	text, _, _ := strings.Cut(string(a.body), "\n")
	kind := fmt.Errorf("status %d: %.200q", a.status, text)
	switch a.status {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", ErrNoDB, kind)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %w", ErrDenied, kind)
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", ErrTooLarge, kind)
	}
	return kind
}
