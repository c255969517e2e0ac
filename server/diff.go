package server

import (
	"net/http"

	"sequins/server/internal/negotiate"
)

// asksDiff reports whether a target is GET /<db>?diff.
func (t *target) asksDiff() bool { return t.route == routeDB && hasParameter(t.query, "diff") }

// serveDiff answers GET /<db>?diff=OLD..NEW: which keys differ between two versions.
func (r *request) serveDiff(w *writer, req *http.Request) {
	if !r.mayRead() {
		r.respond(w, req)
		return
	}
	if r.s.opts.Diff == nil {
		r.fail(http.StatusNotImplemented, "this node does not compare versions")
		r.respond(w, req)
		return
	}
	r.code = http.StatusOK
	w.Header().Set("Cache-Control", "no-store")
	r.vary |= varyAccept
	lines := negotiate.Media(string(r.asked.accept), plainJSON, linesMedia) == linesMedia
	code, text := r.s.opts.Diff(req.Context(), w, string(r.target.db), string(r.target.query), lines)
	if code == http.StatusOK {
		return
	}
	if code == http.StatusServiceUnavailable {
		r.add("Retry-After", retryAfter)
	}
	r.fail(code, text)
	r.respond(w, req)
}

// asksBlocks reports whether another node asks for GET /<db>?blocks or ?block=N.
func (t *target) asksBlocks() bool {
	return t.route == routeDB && len(t.proxy) > 0 && (hasParameter(t.query, "blocks") || hasParameter(t.query, "block"))
}

// serveBlocks answers a node that copies blocks.
func (r *request) serveBlocks(w *writer, req *http.Request) {
	code, text := http.StatusNotImplemented, "this node gives no blocks"
	switch {
	case !r.mayRead():
		r.respond(w, req)
		return
	case r.s.opts.Blocks != nil:
		r.code = http.StatusOK
		r.CountAs(r.s.opts.Metrics.Status)
		code, text = r.s.opts.Blocks(w, req, string(r.target.db), string(r.target.query))
	}
	switch code {
	case http.StatusOK:
	case 0:
		w.broken = true
	default:
		r.fail(code, text)
		r.respond(w, req)
	}
}
