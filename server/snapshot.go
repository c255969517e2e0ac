package server

import (
	"maps"
	"net/http"
	"sync"
	"time"
)

// statusAge is for how long a status, and a page rendered from it, is shown again: however many clients ask, each page
// costs the node, and its peers, at most one rendering in that time.
const statusAge = time.Second

// A snapshot is the status as it was at one moment, with the answers that have been rendered from it. All of it is
// shown to everybody who may see pages; rights are checked before.
type snapshot struct {
	take func() (st Status, level string)

	mu      sync.Mutex // held while the status is taken and while an answer is rendered
	at      time.Time  // when status had been taken
	status  Status     // not to be changed
	level   string
	answers map[pageKey]*rendered
}

// pageKey names an answer that is rendered from a snapshot.
type pageKey struct {
	route route  // routeHealth, routeDB, or another for the whole node
	db    string // of routeDB
	html  bool   // the page for people
	code  bool   // only the status code
}

// rendered is a finished answer; it keeps what is written to it as an http.ResponseWriter.
type rendered struct {
	code   int
	header http.Header
	body   []byte
}

// Header implements http.ResponseWriter.
func (r *rendered) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *rendered) WriteHeader(code int) { r.code = code }

// Write implements http.ResponseWriter.
func (r *rendered) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

// serve writes the answer of a key, which render makes from the status if there is none that is young enough. Of a db
// that is not in the status there is none: the answer is 404.
func (s *snapshot) serve(w http.ResponseWriter, key pageKey, render func(w http.ResponseWriter, st Status, level string)) {
	answer := s.answer(key, render)
	if answer == nil {
		text(w, http.StatusNotFound, "no such db")
		return
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.code)
	w.Write(answer.body) //nolint:errcheck // the client has gone
}

func (s *snapshot) answer(key pageKey, render func(w http.ResponseWriter, st Status, level string)) *rendered {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= statusAge {
		s.status, s.level = s.take()
		s.at, s.answers = time.Now(), make(map[pageKey]*rendered)
	}
	if _, known := s.status.DBs[key.db]; key.route == routeDB && !known {
		return nil
	}
	answer := s.answers[key]
	if answer == nil {
		answer = &rendered{code: http.StatusOK, header: make(http.Header)}
		render(answer, s.status, s.level)
		s.answers[key] = answer
	}
	return answer
}
