package server

import (
	"net/http"

	"sequins/reads"
)

// asksPartitions reports whether a target is GET /<db>?partitions.
func (t *target) asksPartitions() bool {
	return t.route == routeDB && hasParameter(t.query, "partitions")
}

// servePartitions answers GET /<db>?partitions: the map from keys to nodes. It is counted as a status page.
func (r *request) servePartitions(w *writer, req *http.Request) {
	if !r.mayRead() {
		r.respond(w, req)
		return
	}
	r.query = reads.Query{DB: r.target.db, AtLeast: r.asked.atLeast, Exact: r.asked.exact}
	m, o := r.Partitions(&r.query)
	r.CountAs(r.s.opts.Metrics.Status)
	if o != reads.Found {
		w.Header().Set("Cache-Control", "no-store")
		r.prepare(o)
		r.respond(w, req)
		return
	}
	m.Scheme = "http"
	if r.conn != nil && r.conn.IsTLS() {
		m.Scheme = "https"
	}
	w.Header().Set(keyVersion, m.Version)
	r.s.json(w, http.StatusOK, m)
}
