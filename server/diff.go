package server

import (
	"net/http"

	"sequins/internal/wire"
	"sequins/server/internal/negotiate"
)

// serveDiff answers GET /<db>?diff=OLD..NEW: which keys differ between two versions.
func (r *request) serveDiff(w *writer, req *http.Request) (prepared bool) {
	r.code = http.StatusOK
	w.Header().Set("Cache-Control", "no-store")
	r.vary |= varyAccept
	lines := negotiate.Media(string(r.asked.accept), wire.JSON, wire.Lines) == wire.Lines
	code, text := r.s.opts.Diff(req.Context(), w, string(r.target.db), string(r.target.query), lines)
	if code == http.StatusOK {
		return false
	}
	if code == http.StatusServiceUnavailable {
		r.add("Retry-After", retryAfter)
	}
	r.fail(code, text)
	return true
}

// serveBlocks answers a node that copies blocks.
func (r *request) serveBlocks(w *writer, req *http.Request) (prepared bool) {
	r.code = http.StatusOK
	r.CountAs(r.s.opts.Metrics.Status)
	code, text := r.s.opts.Blocks(w, req, string(r.target.db), string(r.target.query))
	switch code {
	case http.StatusOK:
		return false
	case 0:
		w.broken = true
		return false
	}
	r.fail(code, text)
	return true
}
