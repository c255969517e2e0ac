package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"sequins/blocks"
)

// stream makes body the response's, n bytes of it. From now on the request ends
// when fasthttp closes the body, which it does whatever happens, with the error
// that ended the writing. Until then its handle keeps what the body reads from.
func (r *request) stream(body io.Reader, n int) {
	r.streaming = true
	r.ctx.Response.SetBodyStream(body, n)
}

// copied is the length in bytes up to which to copy a value once more costs less
// than to stream it.
const copied = 4 << 10

// body makes b the response's, which lies in the page where it was found, in the
// request's scratch, or in a peer's answer.
func (r *request) body(b []byte) {
	if len(b) <= copied {
		r.ctx.Response.SetBody(b)
		return
	}
	r.small.Reset(b)
	r.stream(&r.small, len(b))
}

// smallBody is a value that is not copied. WriteTo puts it into the buffer that
// goes to the socket.
type smallBody struct {
	bytes.Reader
	r *request
}

// CloseWithError ends the request.
func (b *smallBody) CloseWithError(err error) error {
	if err != nil {
		b.r.code = statusClientGone
	}
	b.Reset(nil)
	b.r.end()
	return nil
}

// largeBody is part of a large value.
type largeBody struct {
	r         *request
	src       io.ReadCloser
	partition int
	first     [1]byte // read already
	unread    bool
	failed    error // of src
	sent      int64
	began     time.Time
}

// A client that is still reading from a version that is being removed has to read
// at leavingRate on average, in bytes a second, after the first leavingGrace: the
// version's files cannot be deleted before.
const (
	leavingRate  = 32 << 10
	leavingGrace = 10 * time.Second
)

var errLeaving = errors.New("the version has been replaced, and the client reads too slowly")

// tooSlow reports whether the client has had its time.
func (b *largeBody) tooSlow() bool {
	late := time.Since(b.began) - leavingGrace
	return late > 0 && float64(b.sent) < late.Seconds()*leavingRate && b.r.handle.Leaving()
}

// open begins to read part of a large value. Its first chunk is read and
// verified here, where a bad one can still be answered with an error.
func (r *request) open(v blocks.Value, partition int, sel selection) (*largeBody, error) {
	b := &largeBody{r: r, src: v.Section(sel.start, sel.end-sel.start), partition: partition, unread: true, began: time.Now()}
	if _, err := io.ReadFull(b.src, b.first[:]); err != nil {
		b.src.Close() //nolint:errcheck // it was only read from
		r.handle.Report(partition, err)
		return nil, err
	}
	return b, nil
}

// Read implements io.Reader. After an error the connection is cut: the client
// has been promised a length, and sees that it is not there.
func (b *largeBody) Read(p []byte) (n int, err error) {
	if b.tooSlow() {
		b.failed = errLeaving
		return 0, errLeaving
	}
	if b.unread && len(p) > 0 {
		b.unread = false
		p[0] = b.first[0]
		n = 1
	}
	m, err := b.src.Read(p[n:])
	b.sent += int64(n + m)
	b.r.bytes += int64(n + m)
	if err != nil && err != io.EOF {
		b.failed = err
	}
	return n + m, err
}

// CloseWithError ends the request.
func (b *largeBody) CloseWithError(err error) error {
	r := b.r
	switch {
	case errors.Is(b.failed, errLeaving):
		r.code = statusClientGone
		r.s.trouble("a client was cut off", "target", r.escaped(), "version", r.handle.Version(), "error", b.failed)
	case b.failed != nil:
		r.code = http.StatusInternalServerError
		r.handle.Report(b.partition, b.failed)
		r.broken(b.partition, b.failed)
	case err != nil:
		r.code = statusClientGone
	}
	errc := b.src.Close()
	r.end()
	return errc
}

// peerBody is a large value that a peer sends.
type peerBody struct {
	r      *request
	failed error
}

// Read implements io.Reader. After an error the connection is cut, as the
// peer's was.
func (b *peerBody) Read(p []byte) (int, error) {
	n, err := b.r.answered.Read(p)
	b.r.bytes += int64(n)
	if err != nil && err != io.EOF {
		b.failed = err
	}
	return n, err
}

// CloseWithError ends the request.
func (b *peerBody) CloseWithError(err error) error {
	b.ended(err)
	b.r.end()
	return nil
}

// ended takes up how the body has ended.
func (b *peerBody) ended(err error) {
	r := b.r
	switch {
	case b.failed != nil:
		r.code = http.StatusBadGateway
		r.s.trouble("reading a peer's answer", "target", r.escaped(), "error", b.failed)
	case err != nil:
		r.code = statusClientGone
	}
}
