package server

import (
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
	var large *largeBody
	if sel.hasBody() && v.Large() && !r.ctx.IsHead() {
		var err error
		if large, err = r.open(v, partition, sel); err != nil {
			return err
		}
	}
	r.head(h, rep, sel)
	n := int(sel.end - sel.start)
	switch {
	case sel.status == http.StatusPreconditionFailed:
		r.fail(sel.status, "the value is not the one of the request's condition")
	case sel.status == http.StatusRequestedRangeNotSatisfiable:
		r.fail(sel.status, "the range begins after the end of the value")
	case !sel.hasBody():
	case r.ctx.IsHead():
		r.ctx.Response.SkipBody = true
		r.ctx.Response.Header.SetContentLength(n)
	case large != nil:
		r.stream(large, n)
	default:
		r.bytes = int64(n)
		r.body(v.Bytes()[sel.start:sel.end])
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
