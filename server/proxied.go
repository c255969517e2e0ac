package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
)

// What goes with a request to a peer, and what of its answer to the client.
var (
	forwarded = []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"}
	returned  = []string{"Last-Modified", "Etag", "Content-Type", "Content-Range", "Accept-Ranges"}
)

// fetch answers with what a peer says. An error means that nothing has been
// answered yet. A peer is asked for this very version; one that answers from
// another is broken, and not passed on.
func (r *request) fetch(h *heads, peers []string) error {
	resp, peer, err := r.s.opts.Proxy.Fetch(r.s.ending, peers, h.version,
		string(r.ctx.Method()), string(r.target.path), r.forwarded())
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			r.s.trouble("asking peers", "target", r.escaped(), "version", h.version, "peers", peers, "error", err)
		}
		return err
	}
	if v := resp.Header.Get("X-Sequins-Version"); v != h.version || !usable(resp) {
		resp.Body.Close() //nolint:errcheck // it is thrown away
		err := fmt.Errorf("peer %s answers with status %d from version %q instead of %q", peer, resp.StatusCode, v, h.version)
		r.s.trouble("asking peers", "target", r.escaped(), "error", err)
		return err
	}
	r.pass(h, resp, peer)
	return nil
}

// usable says whether an answer can be passed on: it is one about a key, and
// says how long it is.
func usable(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		return resp.ContentLength >= 0
	case http.StatusNotFound, http.StatusNotModified, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return true
	}
	return false
}

// forwarded are the headers that a peer needs.
func (r *request) forwarded() http.Header {
	header := make(http.Header)
	if !hasConditions(r.ctx.Request.Header.RawHeaders()) {
		return header
	}
	for _, name := range forwarded {
		if lines := r.ctx.Request.Header.PeekAll(name); len(lines) > 0 {
			header.Set(name, string(bytes.Join(lines, []byte(", "))))
		}
	}
	return header
}

// pass sends a peer's answer on.
func (r *request) pass(h *heads, resp *http.Response, peer string) {
	header := &r.ctx.Response.Header
	header.SetCanonical(keyVersion, h.versionValue)
	header.Set("X-Sequins-Proxied-To", peer)
	for _, name := range returned {
		if v := resp.Header.Get(name); v != "" {
			header.Set(name, v)
		}
	}
	r.code = resp.StatusCode
	r.ctx.SetStatusCode(r.code)
	switch {
	case r.code == http.StatusNotFound:
		r.fail(r.code, "no such key")
	case r.code == http.StatusPreconditionFailed, r.code == http.StatusRequestedRangeNotSatisfiable:
		r.fail(r.code, "the peer's value does not meet the request's condition or range")
	case r.code == http.StatusNotModified:
	case r.ctx.IsHead():
		r.ctx.Response.SkipBody = true
		header.SetContentLength(int(resp.ContentLength))
	default:
		r.stream(&peerBody{r: r, src: resp.Body}, int(resp.ContentLength))
		return
	}
	resp.Body.Close() //nolint:errcheck // it has been answered without
}
