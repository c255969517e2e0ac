package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"sequins/internal/http1"
	"sequins/internal/wire"
)

// caller sends requests to nodes. It uses a RoundTripper instead of an http.Client and so follows no redirect: a node
// redirects nobody, and what authorizes a request is for the node that was asked.
type caller struct {
	token   string        // of all requests; "" for none
	silence time.Duration // how long a node may send nothing
}

// Want is the version that an answer must be from; the zero value is any.
type Want struct {
	// AtLeast is the oldest version, Version the only one; "" for any.
	AtLeast, Version string
}

// request is a request to one node.
type request struct {
	url     string // escaped, with its query
	accept  string
	body    []byte // not nil: POST of frames
	want    Want
	patient bool              // the answer may take any time
	explain func(error) error // of reading the answer; may be nil
}

// errSilent is why a request to a node that sends nothing ends.
var errSilent = errors.New("nothing received")

// send sends a request and returns the answer, whatever its status. Its body is read while the node sends it, and must be closed.
func (c *caller) send(ctx context.Context, via http.RoundTripper, r *request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := c.newRequest(ctx, r)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	b := &body{ctx: ctx, cancel: cancel, silence: c.silence, explain: r.explain}
	if !r.patient {
		b.watch = time.AfterFunc(c.silence, func() { cancel(fmt.Errorf("%w for %v", errSilent, c.silence)) })
		if req.Body != nil {
			req.Body = upload{req.Body, b}
		}
	}
	resp, err := via.RoundTrip(req) //nolint:bodyclose // the caller closes it
	if err != nil {
		err = causeOf(ctx, err)
		b.end()
		return nil, err
	}
	b.ReadCloser, resp.Body = resp.Body, b
	if err := checkFraming(resp); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return resp, nil
}

// errURL is the error for an invalid URL. It does not quote the URL, which can have a password.
var errURL = errors.New("not the URL of a node")

func (c *caller) newRequest(ctx context.Context, r *request) (*http.Request, error) {
	method, content := http.MethodGet, io.Reader(nil)
	if r.body != nil {
		method, content = http.MethodPost, bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url, content)
	if err != nil {
		return nil, errURL
	}
	req.Header["User-Agent"] = userAgent
	set := func(name, value string) {
		if value != "" {
			req.Header[name] = []string{value}
		}
	}
	set("Accept", r.accept)
	set(wire.AtLeast, r.want.AtLeast)
	set(wire.Version, r.want.Version)
	if r.body != nil {
		set("Content-Type", wire.Bytes)
		req.Header["Idempotency-Key"] = nil // not sent; makes the transport repeat it if an idle connection was closed
	}
	if c.token != "" {
		set("Authorization", "Bearer "+c.token)
	} else if user := req.URL.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	return req, nil
}

var userAgent = []string{"sequins-go"}

// causeOf returns the reason for which ctx was canceled instead of the error that this caused.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// checkFraming rejects answers whose end cannot be told from a broken connection, and those with a coding that was
// not requested. What Options.Transport has decompressed has lost its length, and its end is that of gzip.
func checkFraming(resp *http.Response) error {
	if resp.ContentLength < 0 && !resp.Uncompressed && resp.ProtoMajor == 1 && len(resp.TransferEncoding) == 0 && resp.StatusCode == http.StatusOK {
		return fmt.Errorf("%w: it has no length", ErrStrange)
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return fmt.Errorf("%w: it has the coding %.100q", ErrStrange, coding)
	}
	return nil
}

// body is the body of an answer. Reading it fails when the node sends nothing for the time of silence.
type body struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	watch   *time.Timer // nil for a request that is patient
	silence time.Duration
	explain func(error) error // may be nil
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.watch != nil {
		b.watch.Reset(b.silence)
	}
	if err != nil && err != io.EOF {
		err = causeOf(b.ctx, err)
		if b.explain != nil {
			err = b.explain(err)
		}
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (b *body) end() {
	b.cancel(nil)
	if b.watch != nil {
		b.watch.Stop()
	}
}

// upload is the body of a request. A node that takes more of it is not silent.
type upload struct {
	io.ReadCloser
	answer *body
}

func (u upload) Read(p []byte) (int, error) {
	u.answer.watch.Reset(u.answer.silence)
	return u.ReadCloser.Read(p)
}

// newTransport returns a transport of its own pool of at most conns connections to a node, 0 for any number.
func newTransport(secure *tls.Config, patience time.Duration, conns int) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: patience, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    patience,
		MaxConnsPerHost:        conns,
		MaxIdleConnsPerHost:    conns,
		IdleConnTimeout:        90 * time.Second, // nodes close connections after two minutes by default
		MaxResponseHeaderBytes: wire.MaxHeader,
		DisableCompression:     true,
	}
}

// pathOf returns the path of a key of a db whose name is escaped. In the key, all but unreserved characters are escaped.
func pathOf(db string, key []byte) string {
	keep := "-_~."
	if len(key) <= 2 { // "." and ".." alone are segments that proxies remove
		keep = "-_~"
	}
	b := make([]byte, 0, len("//")+len(db)+len(key)+16)
	return string(http1.AppendEscaped(append(append(append(b, '/'), db...), '/'), key, keep))
}
