package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sequins/docs"
	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/server/internal/negotiate"
	"sequins/server/statuspage"
)

// servePage answers requests for anything but a key.
func (r *request) servePage(w *writer) (prepared bool) {
	s, m := r.s, r.s.opts.Metrics
	if !r.allowed() {
		// A browser gets an empty page that asks its user for a token. It does not reveal whether a db exists.
		if r.text == needsToken && !r.target.route.isProbe() && r.target.route != routeAPI && r.prefersHTML() {
			w.Header().Set("WWW-Authenticate", challenge)
			page, err := statuspage.RenderLogin(string(r.target.db), time.Now())
			render(w, http.StatusUnauthorized, page, err)
			return false
		}
		return true
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
		code, line := s.readiness(r.target.query, r.canViewPages())
		if code != http.StatusOK {
			r.failPage(code, line)
			return true
		}
		text(w, code, line)
	case routeRunbook:
		render(w, http.StatusOK, statuspage.Runbook, nil)
	case routeAPI:
		w.Header().Set("Content-Type", apiMedia)
		send(w, http.StatusOK, docs.OpenAPI)
	case routeDB:
		return r.statusPage(w, pageKey{route: routeDB, db: string(r.target.db)})
	default:
		w.Header().Set("Link", "<"+apiPath+`>; rel="service-desc"; type="`+apiMedia+`"`)
		return r.statusPage(w, pageKey{route: routeNode})
	}
	return false
}

// apiMedia is the media type of the description of the HTTP interface.
const apiMedia = "application/yaml"

// failPage prepares an error that must not be cached.
func (r *request) failPage(code int, line string) {
	r.fail(code, line)
	r.cache = noStore
}

// isCheck reports whether the request is OPTIONS / or OPTIONS *, with which HAProxy checks a server if it is told nothing else. malformed is the error
// of the target.
func (r *request) isCheck(malformed error) bool {
	return r.method == http.MethodOptions && len(r.asked.origin) == 0 && (string(r.asked.uri) == "*" || malformed == nil && r.target.route == routeNode)
}

// answerCheck answers as GET /readyz does for a client without a token. Without a body, as HAProxy sends HTTP/1.0 and reads the status only.
func (r *request) answerCheck(w *writer) (prepared bool) {
	r.CountAs(r.s.opts.Metrics.Health)
	w.Header().Set("Allow", r.methods())
	if code, line := r.s.readiness(nil, false); code != http.StatusOK {
		r.failPage(code, line)
		return true
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return false
}

// readiness returns the answer to a request of /readyz with a query. The reason names dbs, so clients that may not view pages
// do not get it.
func (s *Server) readiness(query []byte, canView bool) (code int, line string) {
	db, err := nameParameter(query, "db")
	if err != nil {
		return http.StatusBadRequest, err.Error()
	}
	ok, reason := s.catalog.Ready(string(db))
	switch {
	case !ok && !canView:
		return http.StatusServiceUnavailable, "not ready"
	case s.open.Draining():
		return http.StatusServiceUnavailable, "draining: this node is shutting down"
	case !ok:
		return http.StatusServiceUnavailable, "not ready: " + oneLine(reason)
	}
	return http.StatusOK, "ready"
}

// health answers GET /healthz with the versions on this node, or with only the status code.
func (s *Server) health(w http.ResponseWriter, canView bool) {
	s.ownStatus.answer(pageKey{route: routeHealth, code: !canView}, func(w http.ResponseWriter, st status.Status) {
		dbs, active := st.OnThisNode()
		code := http.StatusNotFound
		if active {
			code = http.StatusOK
		}
		if !canView {
			sendJSON(w, code, struct{}{})
			return
		}
		if st.ShardID != "" {
			w.Header().Set(wire.ShardID, st.ShardID)
		}
		sendJSON(w, code, dbs)
	}).send(w)
}

// statusPage answers GET /, GET /<db> and GET /<db>/ with the status of the node or of one db, as HTML or JSON.
func (r *request) statusPage(w *writer, key pageKey) (prepared bool) {
	s := r.s
	if key.route == routeNode && string(r.target.proxy) == "settings" {
		st := status.Status{DBs: map[string]status.DB{}}
		if s.opts.Settings != nil {
			st.Settings = s.opts.Settings()
		}
		sendJSON(w, http.StatusOK, st) // without dbs, it is of one size
		return false
	}
	if key.route == routeNode && string(r.target.proxy) == "serving" {
		r.code = http.StatusOK
		w.Header().Set("Cache-Control", "no-store")
		s.opts.Serving(w)
		return false
	}
	key.html, key.peer = r.prefersHTML(), r.internal
	r.vary |= varyAccept
	of := s.clusterStatus
	if s.peers == nil || r.internal {
		of = s.ownStatus
	}
	answer := of.answer(key, func(w http.ResponseWriter, st status.Status) {
		if !key.peer {
			if db := st.DBs[key.db]; key.route == routeDB {
				db.Events = s.catalog.Events(key.db)
				st.DBs = maps.Clone(st.DBs)
				st.DBs[key.db] = db
			}
			st.Events = s.catalog.Events("")
		}
		switch {
		case key.html:
			page, err := statuspage.Render(st, key.db, time.Now())
			render(w, http.StatusOK, page, err)
		case key.route == routeDB:
			sendJSON(w, http.StatusOK, st.DBs[key.db])
		default:
			sendJSON(w, http.StatusOK, st)
		}
	})
	if answer == nil {
		r.failPage(http.StatusNotFound, "no such db")
		return true
	}
	if r.op == opUnknown {
		r.failPage(http.StatusBadRequest, fmt.Sprintf("unknown parameter %.40q: a read of a database has one of %s; its status has none", r.unknown, strings.Join(dbParameters, ", ")))
		return true
	}
	answer.send(w)
	return false
}

// prefersHTML reports whether the client prefers a page to JSON.
func (r *request) prefersHTML() bool {
	return negotiate.Media(string(r.asked.accept), wire.JSON, "text/html") == "text/html"
}

func (s *Server) status() status.Status { return s.statusWith(nil) }

// cluster returns the status of this node merged with that of the other nodes.
func (s *Server) cluster() status.Status { return s.statusWith(s.peers.Ask(s.ending)) }

// statusWith returns the status of this node, merged with those of others unless they are nil.
func (s *Server) statusWith(others []status.Answer) status.Status {
	st := s.catalog.Status()
	st.Draining = s.open.Draining()
	if st.DBs == nil {
		st.DBs = map[string]status.DB{}
	}
	var traffic map[string]status.Traffic
	traffic, st.Traffic = s.opts.Metrics.Traffic()
	for name, t := range traffic {
		if db, known := st.DBs[name]; known {
			db.Traffic = t
			st.DBs[name] = db
		}
	}
	if others != nil {
		st.Merge(others)
	}
	ready, reason := s.catalog.Ready("")
	st.Complete(ready, oneLine(reason))
	return st
}

func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // for readability; nosniff makes escapes unnecessary
	if err := e.Encode(v); err != nil {
		panic(err) // a bug, see writer.leave
	}
	return b.Bytes()
}

// sendJSON answers with an object that must not be cached.
func sendJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", wire.JSON)
	w.Header().Set("Cache-Control", "no-store")
	send(w, code, encodeJSON(v))
}

func send(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	w.Write(body) //nolint:errcheck // the client has gone
}

// text answers with one line that must not be cached.
func text(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", plainText)
	send(w, code, []byte(line+"\n"))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// state returns what a scrape of the metrics reports.
func (s *Server) state() metrics.State {
	refused, handshakes := s.open.Refused()
	return metrics.State{Connections: s.open.Count(), Refused: refused, BadHandshakes: handshakes, Status: s.status()}
}

func render(w http.ResponseWriter, code int, page []byte, err error) {
	if err != nil {
		panic(err) // a bug, see writer.leave
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", statuspage.Policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	send(w, code, page)
}
