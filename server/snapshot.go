package server

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"sequins/observe/status"
)

// statusAge is how long a status and the pages rendered from it are reused. However many clients ask, each
// page costs the node and its peers at most one rendering in that time.
const statusAge = time.Second

// A snapshot caches the status and the answers rendered from it. The answers depend on rights only through
// their pageKey; callers check rights first.
type snapshot struct {
	take func() status.Status

	mu      sync.Mutex    // held while the status is taken and while an answer is rendered
	at      time.Time     // when status was taken
	status  status.Status // must not be modified
	answers map[pageKey]*rendered
}

// pageKey identifies an answer rendered from a snapshot.
type pageKey struct {
	route route  // routeHealth, routeDB, or another one for the whole node
	db    string // of routeDB
	html  bool   // the HTML page
	code  bool   // only the status code
	peer  bool   // for another node
}

// rendered is a rendered answer. As an http.ResponseWriter it collects what is written to it.
type rendered struct {
	code   int
	header http.Header
	body   []byte
}

func (r *rendered) Header() http.Header { return r.header }

func (r *rendered) WriteHeader(code int) { r.code = code }

func (r *rendered) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

func (r *rendered) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.code)
	w.Write(r.body) //nolint:errcheck // the client has gone
}

// answer returns the answer for a key, and calls render unless there is a recent one. It is nil for a db that is not in
// the status.
func (s *snapshot) answer(key pageKey, render func(w http.ResponseWriter, st status.Status)) *rendered {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= statusAge {
		s.status = s.take()
		s.at, s.answers = time.Now(), make(map[pageKey]*rendered)
	}
	if _, known := s.status.DBs[key.db]; key.route == routeDB && !known {
		return nil
	}
	answer := s.answers[key]
	if answer == nil {
		answer = &rendered{code: http.StatusOK, header: make(http.Header)}
		render(answer, s.status)
		s.answers[key] = answer
	}
	return answer
}
