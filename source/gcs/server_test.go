package gcs_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// server has those parts of Google Cloud Storage that fake-gcs-server lacks: pages of listings, conditions of downloads, and
// tokens.
type server struct {
	*httptest.Server
	t testing.TB

	mu      sync.Mutex
	objects map[string]object
	next    int64                                         // generation
	token   string                                        // requests need it, unless it is empty
	before  func(http.ResponseWriter, *http.Request) bool // answers a request itself if it returns true
}

type object struct {
	data       []byte
	generation int64
}

func newServer(t testing.TB) *server {
	s := &server{t: t, objects: map[string]object{}, next: 1}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) put(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = object{data, s.next}
	s.next++
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

func (s *server) setToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil && s.before(w, r) {
		return
	}
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		fail(w, http.StatusUnauthorized, "Invalid Credentials")
		return
	}
	name, isObject := strings.CutPrefix(r.URL.Path, "/storage/v1/b/bucket/o/")
	switch {
	case isObject && r.Method == http.MethodGet:
		s.get(w, r, name)
	case r.URL.Path == "/storage/v1/b/bucket/o":
		s.list(w, r)
	default:
		fail(w, http.StatusBadRequest, "what is "+r.URL.Path)
	}
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	answer(w, map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func answer(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }

func crc(data []byte) string {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func (o object) resource(name string) map[string]any {
	return map[string]any{"name": name, "size": strconv.Itoa(len(o.data)), "generation": strconv.FormatInt(o.generation, 10),
		"timeCreated": "2026-01-31T10:00:00.123Z", "crc32c": crc(o.data), "md5Hash": "md5 of " + crc(o.data)}
}

// list answers with pages of two names.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
	const most = 2
	q := r.URL.Query()
	names := map[string]bool{}
	for name := range s.objects {
		rest, ok := strings.CutPrefix(name, q.Get("prefix"))
		if dir, _, nested := strings.Cut(rest, "/"); ok && nested && q.Get("delimiter") != "" {
			names[q.Get("prefix")+dir+"/"] = true
		} else if ok {
			names[name] = true
		}
	}
	var sorted []string
	for name := range names {
		if name > q.Get("pageToken") {
			sorted = append(sorted, name)
		}
	}
	slices.Sort(sorted)
	page := map[string]any{"kind": "storage#objects"}
	if len(sorted) > most {
		sorted = sorted[:most]
		page["nextPageToken"] = sorted[most-1]
	}
	var prefixes []string
	var items []any
	for _, name := range sorted {
		if o, ok := s.objects[name]; ok {
			items = append(items, o.resource(name))
		} else {
			prefixes = append(prefixes, name)
		}
	}
	page["prefixes"], page["items"] = prefixes, items
	answer(w, page)
}

func (s *server) get(w http.ResponseWriter, r *http.Request, name string) {
	o, ok := s.objects[name]
	q := r.URL.Query()
	switch want := q.Get("ifGenerationMatch"); {
	case !ok:
		fail(w, http.StatusNotFound, "No such object: bucket/"+name)
		return
	case want != "" && want != strconv.FormatInt(o.generation, 10):
		fail(w, http.StatusPreconditionFailed, "At least one of the pre-conditions you specified did not hold.")
		return
	case q.Get("alt") != "media":
		answer(w, o.resource(name))
		return
	}
	var from, to int
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(o.generation, 10))
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); n < 2 {
		_, _ = w.Write(o.data)
		return
	}
	if from >= len(o.data) {
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	to = min(to, len(o.data)-1)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(o.data)))
	w.Header().Set("Content-Length", fmt.Sprint(to+1-from))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(o.data[from : to+1])
}
