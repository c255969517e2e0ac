package gcs_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"sequins/source"
)

// create writes db/1/file.
func create(t testing.TB, src source.Creator, data []byte) error {
	t.Helper()
	w, err := src.Create(t.Context(), "db", "1", "file", int64(len(data)))
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Commit()
}

// TestUploadFaults: an upload continues where the server has what was sent.
func TestUploadFaults(t *testing.T) {
	data := random(20<<20 + 5)
	abort := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	for name, fault := range map[string]func(s *server, w http.ResponseWriter, r *http.Request) bool{
		"unavailable": func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		"connection lost": func(_ *server, w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
			abort(w)
			return true
		},
		"half of a part taken": func(s *server, w http.ResponseWriter, r *http.Request) bool {
			some, _ := io.ReadAll(io.LimitReader(r.Body, 3<<20))
			u := s.uploads[r.URL.Query().Get("upload_id")]
			u.data = append(u.data, some...)
			abort(w)
			return true
		},
		"answer lost": func(s *server, w http.ResponseWriter, r *http.Request) bool {
			var lost discard
			s.take(&lost, r, s.uploads[r.URL.Query().Get("upload_id")])
			abort(w)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			n := 0
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut || strings.HasPrefix(r.Header.Get("Content-Range"), "bytes *") {
					return false
				}
				n++
				return n%2 == 1 && fault(s, w, r)
			}
			if err := create(t, open(t, options(s.URL, "")), data); err != nil {
				t.Fatal(err)
			}
			if got := s.objects["db/1/file"].data; !bytes.Equal(got, data) {
				t.Errorf("%d bytes of %d, or others, are stored", len(got), len(data))
			}
			if n < 4 {
				t.Errorf("%d parts were sent", n)
			}
		})
	}
}

// discard is an answer that is lost.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header {
	if d.header == nil {
		d.header = http.Header{}
	}
	return d.header
}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// TestUploadGivenUp: faults that last are an error, and nothing is left.
func TestUploadGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		before func(s *server, w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		"unavailable": {func(_ *server, w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return r.Method == http.MethodPut
		}, "503"},
		"takes nothing": {func(_ *server, w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				w.WriteHeader(http.StatusPermanentRedirect)
			}
			return r.Method == http.MethodPut
		}, "0 bytes of a part"},
		"takes too much": {func(_ *server, w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				w.Header().Set("Range", "bytes=0-99999999999")
				w.WriteHeader(http.StatusPermanentRedirect)
			}
			return r.Method == http.MethodPut
		}, "invalid Range"},
		"elsewhere": {func(_ *server, w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.Header().Set("Location", "http://elsewhere.example/upload?upload_id=1")
			}
			return r.Method == http.MethodPost
		}, "another server"},
		"other bytes": {func(s *server, _ http.ResponseWriter, _ *http.Request) bool {
			s.damage = true
			return false
		}, "does not match its checksums"},
	} {
		s := newServer(t)
		s.before = func(w http.ResponseWriter, r *http.Request) bool { return test.before(s, w, r) }
		o := options(s.URL, "")
		o.MaxRetries = 1
		err := create(t, open(t, o), random(20<<20))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "gs://bucket/db/1/file") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if len(s.objects) > 0 || len(s.uploads) > 0 && name != "other bytes" {
			t.Errorf("%s: %d objects and %d uploads are left", name, len(s.objects), len(s.uploads))
		}
	}
}
