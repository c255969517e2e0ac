package server

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sequins/metrics"
)

// servePage answers requests for anything but a key.
func (r *request) servePage(w *writer, req *http.Request) {
	s, m := r.s, r.s.opts.Metrics
	if !r.allowed() {
		if r.text == needsToken && !r.target.route.isProbe() && wantsHTML(req.Header["Accept"]) {
			w.Header().Set("WWW-Authenticate", challenge)
			s.askForToken(w, string(r.target.db))
			return
		}
		r.respond(w, req)
		return
	}
	if r.CountAs(m.Status); r.target.route.isProbe() {
		r.CountAs(m.Health)
	}
	switch r.target.route {
	case routeHealth:
		s.health(w, r.canViewPages())
	case routeLive: // the process responds
		text(w, http.StatusOK, "ok")
	case routeReady:
		s.ready(w, r.canViewPages(), r.target.query)
	case routeDB:
		s.dbPage(w, req, string(r.target.db))
	default:
		s.nodePage(w, req)
	}
}

// ready answers GET /readyz, and /readyz?db=NAME for one db. The reason names dbs, so clients that may not
// view pages do not get it.
func (s *Server) ready(w http.ResponseWriter, canView bool, query []byte) {
	values, err := url.ParseQuery(string(query))
	if err != nil {
		text(w, http.StatusBadRequest, "the query of the request cannot be read")
		return
	}
	ok, reason := s.catalog.Ready(values.Get("db"))
	switch {
	case !ok && !canView:
		text(w, http.StatusServiceUnavailable, "not ready")
	case s.draining.Load():
		text(w, http.StatusServiceUnavailable, "draining: this node is shutting down")
	case !ok:
		text(w, http.StatusServiceUnavailable, "not ready: "+oneLine(reason))
	default:
		text(w, http.StatusOK, "ready")
	}
}

// health answers GET /healthz with the versions on this node, or with only the status code.
func (s *Server) health(w http.ResponseWriter, canView bool) {
	s.ownStatus.serve(w, pageKey{route: routeHealth, code: !canView}, func(w http.ResponseWriter, st Status, _ string) {
		dbs, code := st.onThisNode()
		if !canView {
			s.json(w, code, struct{}{})
			return
		}
		if st.ShardID != "" {
			w.Header().Set("X-Sequins-Shard-ID", st.ShardID)
		}
		s.json(w, code, dbs)
	})
}

// onThisNode returns the versions of each db on this node, and the status code of GET /healthz.
func (st *Status) onThisNode() (dbs map[string]map[string]NodeStatus, code int) {
	code = http.StatusNotFound
	dbs = make(map[string]map[string]NodeStatus)
	for name, db := range st.DBs {
		for version, v := range db.Versions {
			n, ok := v.Nodes[st.Node]
			if !ok {
				continue
			}
			if dbs[name] == nil {
				dbs[name] = make(map[string]NodeStatus)
			}
			dbs[name][version] = n
			if n.State == StateActive {
				code = http.StatusOK
			}
		}
	}
	return dbs, code
}

// nodePage answers GET /.
func (s *Server) nodePage(w http.ResponseWriter, r *http.Request) {
	s.statusPage(w, r, pageKey{route: routeNode})
}

// dbPage answers GET /<db> and GET /<db>/.
func (s *Server) dbPage(w http.ResponseWriter, r *http.Request, name string) {
	s.statusPage(w, r, pageKey{route: routeDB, db: name})
}

// statusPage answers with the status of the node or of one db, as HTML or JSON.
func (s *Server) statusPage(w http.ResponseWriter, r *http.Request, key pageKey) {
	key.html = wantsHTML(r.Header["Accept"])
	s.statusFor(r).serve(w, key, func(w http.ResponseWriter, st Status, level string) {
		switch {
		case key.html:
			s.render(w, http.StatusOK, newPage(st, level, key.db, time.Now()))
		case key.route == routeDB:
			s.json(w, http.StatusOK, st.DBs[key.db])
		default:
			s.json(w, http.StatusOK, st)
		}
	})
}

// status returns the complete status of this node, without null for lists and objects, and the level of its
// health.
func (s *Server) status() (st Status, level string) {
	st = s.own()
	return st, s.complete(&st)
}

// own returns the catalog's status with the fields that the server knows. complete must be called next.
func (s *Server) own() Status {
	st := s.catalog.Status()
	st.Draining = s.draining.Load()
	if st.DBs == nil {
		st.DBs = map[string]DBStatus{}
	}
	if d := &st.Disk; d.Bytes > 0 {
		d.Blocks, d.Low = st.stored(), d.Free < d.Bytes/10
	}
	return st
}

// complete computes the derived fields of a status.
func (s *Server) complete(st *Status) (level string) {
	for name, db := range st.DBs {
		if db.Versions == nil {
			db.Versions = map[string]VersionStatus{}
		}
		for version, v := range db.Versions {
			v.complete()
			db.Versions[version] = v
		}
		st.DBs[name] = db
	}
	ready, reason := s.catalog.Ready("")
	level, st.Health = st.health(ready, oneLine(reason))
	st.Level, st.Healthy = level, level == levelGood
	return level
}

// complete sets the fields that the catalog leaves to the server.
func (v *VersionStatus) complete() {
	if v.Nodes == nil {
		v.Nodes = map[string]NodeStatus{}
	}
	for name, n := range v.Nodes {
		if n.Partitions == nil {
			n.Partitions = []int{}
			v.Nodes[name] = n
		}
	}
	v.count()
}

func (s *Server) json(w http.ResponseWriter, code int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // for readability; nosniff makes escapes unnecessary
	if err := e.Encode(v); err != nil {
		s.limited.Error("rendering the status", "error", err)
		text(w, http.StatusInternalServerError, "the status cannot be rendered")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept")
	send(w, code, b.Bytes())
}

// send sends a complete body.
func send(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	w.Write(body) //nolint:errcheck // the client has gone
}

// text answers with one line that must not be cached.
func text(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Cache-Control", "no-store")
	sendText(w, code, line)
}

// oneLine joins the lines of a string.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// wantsHTML reports whether an Accept header names text/html. "*/*" does not count, because programs send it.
func wantsHTML(accept []string) bool {
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(media), "text/html") {
				return !refused(params)
			}
		}
	}
	return false
}

// refused reports whether the parameters of a media range contain q=0.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			return err == nil && q == 0
		}
	}
	return false
}

// gauges returns the gauges for a scrape of the metrics.
func (s *Server) gauges() metrics.State {
	st, _ := s.status()
	g := metrics.State{
		Connections:      s.open.count(),
		Refused:          s.refused.Load(),
		BadHandshakes:    s.handshakes.Load(),
		Draining:         st.Draining,
		SourceErrorSince: st.SourceErrorSince,
		RefreshedAt:      st.RefreshedAt,
		StoreBytes:       st.stored(),
	}
	for name, db := range st.DBs {
		g.DBs = append(g.DBs, db.gauges(name, st.Node))
	}
	return g
}

// gauges returns the gauges of a db on a node.
func (d DBStatus) gauges(name, node string) metrics.DB {
	g := metrics.DB{Name: name, Versions: make(map[string]int)}
	for version, v := range d.Versions {
		n, ok := v.Nodes[node]
		if !ok {
			continue
		}
		g.Versions[string(n.State)]++
		if n.Current {
			g.Version, g.Partitions = version, v.NumPartitions
			g.Diverged = n.Diverged
			g.Missing, g.Underreplicated = v.MissingPartitions, v.UnderreplicatedPartitions
			g.ActiveAt, g.LastModified = n.ActiveAt, n.LastModified
			g.Records, g.Bytes = n.Records, n.Bytes
		}
	}
	return g
}

// render answers with the HTML page.
func (s *Server) render(w http.ResponseWriter, code int, p page) {
	var b bytes.Buffer
	p.Style, p.Script = template.CSS(pageStyle), template.JS(pageScript) //nolint:gosec // they are our own
	if err := pageTemplate.Execute(&b, p); err != nil {
		s.limited.Error("rendering the status page", "error", err)
		text(w, http.StatusInternalServerError, "the status page cannot be rendered")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	send(w, code, b.Bytes())
}
