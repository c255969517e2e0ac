package server

import (
	"io"
	"net/http"
	"strconv"

	"sequins/blocks"
)

// The headers of a value. X-Sequins-Version is there wherever a version was
// asked, so that its absence tells a missing db from a missing key.
var (
	keyVersion      = []byte("X-Sequins-Version")
	keyLastModified = []byte("Last-Modified")
	keyETag         = []byte("ETag")
	keyRanges       = []byte("Accept-Ranges")
	keyContentRange = []byte("Content-Range")

	bytesUnit = []byte("bytes")
)

// answer answers with a value, as the request's conditions and range will have
// it. An error means that nothing has been answered yet.
func (r *request) answer(h *heads, partition int, v blocks.Value) error {
	rep := representation{etag: r.tag(v.Hash()), lastModified: h.modified, size: v.Len()}
	sel := choose(&r.ctx.Request.Header, rep)
	var b *body
	if sel.hasBody() && v.Large() && !r.ctx.IsHead() {
		var err error
		if b, err = r.open(v, partition, sel); err != nil {
			return err
		}
	}
	r.head(h, rep, sel)
	n := int(sel.end - sel.start)
	resp := &r.ctx.Response
	switch {
	case sel.status == http.StatusPreconditionFailed:
		r.fail(sel.status, "the value is not the one of the request's condition")
	case sel.status == http.StatusRequestedRangeNotSatisfiable:
		r.fail(sel.status, "the range begins after the end of the value")
	case !sel.hasBody():
	case r.ctx.IsHead():
		resp.SkipBody = true
		resp.Header.SetContentLength(n)
	case b != nil:
		r.body = b
		resp.SetBodyStream(b, n)
	default:
		r.bytes = int64(n)
		resp.SetBody(v.Bytes()[sel.start:sel.end])
	}
	return nil
}

// head sets the status and the headers of an answer about a value.
func (r *request) head(h *heads, rep representation, sel selection) {
	r.code = sel.status
	r.ctx.SetStatusCode(sel.status)
	header := &r.ctx.Response.Header
	header.SetCanonical(keyVersion, h.versionValue)
	header.SetCanonical(keyETag, rep.etag)
	if len(h.lastModified) > 0 {
		header.SetCanonical(keyLastModified, h.lastModified)
	}
	if sel.hasBody() {
		header.SetContentTypeBytes(h.contentType)
		header.SetCanonical(keyRanges, bytesUnit)
	}
	switch sel.status {
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		header.SetCanonical(keyContentRange, contentRange(sel, rep.size))
	}
}

// tag renders the ETag of a value with the given hash.
func (r *request) tag(hash uint64) []byte {
	const digits = "0123456789abcdef"
	r.etag = append(r.etag[:0], '"')
	for shift := 60; shift >= 0; shift -= 4 {
		r.etag = append(r.etag, digits[hash>>shift&15])
	}
	r.etag = append(r.etag, '"')
	return r.etag
}

// contentRange renders "bytes 0-9/10", or "bytes */10" for a range that cannot
// be satisfied.
func contentRange(sel selection, size int64) []byte {
	b := append(make([]byte, 0, 48), "bytes "...)
	if sel.status == http.StatusPartialContent {
		b = strconv.AppendInt(b, sel.start, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, sel.end-1, 10)
	} else {
		b = append(b, '*')
	}
	b = append(b, '/')
	return strconv.AppendInt(b, size, 10)
}

// body is an answer that is being streamed: part of a large value, or what a
// peer has sent. fasthttp closes it, whatever happens, and that is the end of
// the request.
type body struct {
	r         *request
	src       io.ReadCloser
	partition int
	remote    bool

	first  [1]byte // read already
	unread bool
	failed error // of src
}

// open begins to read part of a large value. Its first chunk is read and
// verified here, where a bad one can still be answered with an error.
func (r *request) open(v blocks.Value, partition int, sel selection) (*body, error) {
	b := &body{r: r, src: v.Section(sel.start, sel.end-sel.start), partition: partition, unread: true}
	if _, err := io.ReadFull(b.src, b.first[:]); err != nil {
		b.src.Close() //nolint:errcheck // it was only read from
		r.handle.Report(partition, err)
		return nil, err
	}
	return b, nil
}

// Read implements io.Reader. After an error the connection is cut: the client
// has been promised a length, and sees that it is not there.
func (b *body) Read(p []byte) (n int, err error) {
	if b.unread && len(p) > 0 {
		b.unread = false
		p[0] = b.first[0]
		n = 1
	}
	m, err := b.src.Read(p[n:])
	b.r.bytes += int64(n + m)
	if err != nil && err != io.EOF {
		b.failed = err
	}
	return n + m, err
}

// CloseWithError is called by fasthttp, once, with the error that ended the
// writing.
func (b *body) CloseWithError(err error) error {
	r := b.r
	switch {
	case b.failed != nil && b.remote:
		r.code = http.StatusBadGateway
		r.s.trouble("reading a peer's answer", "target", r.escaped(), "error", b.failed)
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
