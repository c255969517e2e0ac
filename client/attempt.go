package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sequins/internal/names"
	"sequins/internal/wire"
)

// attempt is the request of a call to one of the nodes, and what came of it.
type attempt struct {
	*call
	node  *node
	due   time.Duration // after which it is late
	sent  atomic.Int64  // when it had a connection, by the client's clock; notSent before
	began atomic.Bool   // the node has begun to answer

	// The answer, as received. The status is 0 if there was none.
	status  int
	header  http.Header
	version string   // "" if the answer has no valid name
	data    []byte   // the body
	values  [][]byte // of MultiGet

	// err is why there is no usable answer. It may wrap one of the errors of this package.
	err error
	// final ends the call: other nodes would give the same answer. temporary asks for another round of attempts, after
	// retryAfter. failing counts against the node, so that others are asked first.
	final, temporary, failing bool
}

const notSent = -1

func (cl *call) newAttempt(n *node) *attempt {
	a := &attempt{call: cl, node: n, due: cl.late.estimate()}
	a.sent.Store(notSent)
	return a
}

// waited returns for how long the node has had the request. Time without a connection is not the node's.
func (a *attempt) waited() time.Duration {
	sent := a.sent.Load()
	if sent == notSent {
		return 0
	}
	return a.c.now() - time.Duration(sent)
}

// maxText limits the body of answers other than 200, which are one line of text.
const maxText = 1 << 10

// try sends the request when a connection is free, and receives the complete answer. It gives up after AttemptTimeout without any
// bytes from the node.
func (a *attempt) try(ctx context.Context) error {
	// A node answers GETs of keys faster on connections that have had no other requests.
	via, slots := a.c.others, a.node.others
	if a.body == nil && !strings.Contains(a.path, "?") {
		via, slots = a.c.gets, a.node.gets
	}
	if slots != nil { // otherwise Options.Transport has limits of its own
		// The transport has the same limit; waiting there could not be told from waiting for the node.
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errNoConnection, ctx.Err())
		}
	}
	a.sent.Store(int64(a.c.now()))
	sent := a.request
	sent.url = a.c.scheme + "://" + a.node.addr + a.path
	resp, err := a.c.send(ctx, via, &sent)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	a.began.Store(true)
	a.late.observe(a.waited())
	a.status, a.header = resp.StatusCode, resp.Header
	if v := resp.Header.Get(wire.Version); names.Valid(v) {
		a.version = v
	}
	if a.status != http.StatusOK {
		a.data, _ = io.ReadAll(io.LimitReader(resp.Body, maxText)) // a part of the text will do
		return nil
	}
	a.data, err = readAll(resp.Body, resp.ContentLength, a.limit)
	return err
}

// errNoConnection is the error for a request that was not sent, because all connections to the node were in use.
var errNoConnection = errors.New("all connections to the node are in use")

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
func (a *attempt) retryAfter() time.Duration {
	seconds, err := strconv.ParseUint(a.header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 2 * minRetry
	}
	return min(max(time.Duration(seconds)*time.Second, minRetry), maxRetry)
}

// refusal returns the error for an answer without a result.
func (a *attempt) refusal() error {
	text, _, _ := strings.Cut(string(a.data), "\n")
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
