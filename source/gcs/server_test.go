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

// server has those parts of Google Cloud Storage that fake-gcs-server lacks: pages of listings, conditions of downloads, the
// state of an upload, and tokens. Objects cannot be created but by uploads.
type server struct {
	*httptest.Server
	t testing.TB

	mu      sync.Mutex
	objects map[string]object
	next    int64 // generation
	uploads map[string]*partial
	token   string                                        // requests need it, unless it is empty
	before  func(http.ResponseWriter, *http.Request) bool // answers a request itself if it returns true
	damage  bool                                          // stores something else than what is sent
}

type object struct {
	data       []byte
	generation int64
}

type partial struct {
	name string
	data []byte
	made *object // the answer to later questions
}

func newServer(t testing.TB) *server {
	s := &server{t: t, objects: map[string]object{}, uploads: map[string]*partial{}, next: 1}
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
	case isObject && r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/storage/v1/b/bucket/o":
		s.list(w, r)
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.upload(w, r)
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
	w.Header().Add("X-Goog-Hash", "md5=AAAA")
	w.Header().Add("X-Goog-Hash", "crc32c="+crc(o.data))
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

func (s *server) upload(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("upload_id")
	if r.Method == http.MethodPost {
		var head struct{ Name string }
		if err := json.NewDecoder(r.Body).Decode(&head); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		id = fmt.Sprint("upload-", len(s.uploads))
		s.uploads[id] = &partial{name: head.Name}
		w.Header().Set("Location", s.URL+r.URL.Path+"?uploadType=resumable&upload_id="+id)
		return
	}
	u := s.uploads[id]
	switch {
	case u == nil:
		fail(w, http.StatusNotFound, "no such upload")
	case r.Method == http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(499)
	default:
		s.take(w, r, u)
	}
}

// take takes a part of an upload, or answers how much of it there is.
func (s *server) take(w http.ResponseWriter, r *http.Request, u *partial) {
	said := r.Header.Get("Content-Range")
	var from, to, total int
	if n, _ := fmt.Sscanf(said, "bytes %d-%d/%d", &from, &to, &total); n == 3 {
		data, err := io.ReadAll(r.Body)
		if from != len(u.data) {
			fail(w, http.StatusBadRequest, fmt.Sprintf("%s after %d bytes", said, len(u.data)))
			return
		}
		whole := err == nil && len(data) == to-from+1
		if !whole || len(u.data)+len(data) < total {
			data = data[:len(data)/(256<<10)*(256<<10)] // what Google keeps of an interrupted part
		}
		u.data = append(u.data, data...)
	} else if _, err := fmt.Sscanf(said, "bytes */%d", &total); err != nil {
		fail(w, http.StatusBadRequest, said)
		return
	}
	if len(u.data) == total && u.made == nil {
		u.made = &object{data: u.data, generation: s.next}
		if s.damage {
			u.made.data = append([]byte("x"), u.data[1:]...)
		}
		s.next++
		s.objects[u.name] = *u.made
	}
	if u.made != nil {
		answer(w, u.made.resource(u.name))
		return
	}
	if len(u.data) > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(u.data)-1))
	}
	w.WriteHeader(http.StatusPermanentRedirect)
}
