package server

import (
	"net/http"

	"sequins/internal/wire"
	"sequins/reads"
)

// servePartitions answers GET /<db>?partitions: the map from keys to nodes. It is counted as a status page.
func (r *request) servePartitions(w *writer) (prepared bool) {
	r.query = r.newQuery()
	r.query.Version = nil
	m, o := r.Partitions(&r.query)
	r.CountAs(r.s.opts.Metrics.Status)
	if o != reads.Found {
		r.prepare(o)
		r.cache = noStore
		return true
	}
	m.Scheme = "http"
	if r.conn != nil && r.conn.IsTLS() {
		m.Scheme = "https"
	}
	w.Header().Set(wire.Version, m.Version)
	sendJSON(w, http.StatusOK, m)
	return false
}
