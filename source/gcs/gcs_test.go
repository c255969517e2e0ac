package gcs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"sequins/source"
	"sequins/source/gcs"
	"sequins/test/expect"
	"sequins/test/noise"
)

func TestNew(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	for want, url := range map[string]string{"not of the form": "gs:///x", "gs://bucket/prefix": "s3://x/y", "must be of the form": "gs://key:secret@b/x"} {
		if _, err := gcs.New(gcs.Options{URL: url}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	for url, want := range map[string]string{"gs://b": "gs://b/db/1", "gs://my_b.x/y/": "gs://my_b.x/y/db/1", "gs://b//x/./z": "gs://b/x/z/db/1"} {
		src, err := gcs.New(gcs.Options{URL: url})
		if err != nil || src.Path("db", "1") != want {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	for _, host := range []string{"ftp://h", "http://u:secret@h", "http://h?secret@"} {
		t.Setenv("STORAGE_EMULATOR_HOST", host)
		if _, err := gcs.New(gcs.Options{URL: "gs://b/x"}); err == nil || !strings.Contains(err.Error(), "endpoint: it is not an http") || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestPages lists more than fits on a page, over answers of which every second one is cut.
func TestPages(t *testing.T) {
	s := newServer(t)
	var want []string
	for i := range 9 {
		want = append(want, fmt.Sprintf("part-%05d", i))
		s.put(fmt.Sprintf("p/db/1/part-%05d", i), []byte("x"))
		s.put(fmt.Sprintf("p/db/v%d/x", i), nil)
		s.put(fmt.Sprintf("p/db/1/day=%d/part-0", i), nil)
		want = append(want, fmt.Sprintf("day=%d/part-0", i))
	}
	n := 0
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if n++; n%2 == 1 {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"kind": "storage#obj`)
			return true
		}
		return false
	}
	src := open(t, at(s.URL, "p"))
	c, err := src.Contents(t.Context(), "db", "1")
	if err != nil || len(c.Files) != len(want) || len(c.Dirs) > 0 {
		t.Errorf("%d files, want %d: %v", len(c.Files), len(want), err)
	}
	if versions, err := source.Versions(t.Context(), src, "db"); err != nil || len(versions) != 10 {
		t.Errorf("versions %v, %v", versions, err)
	}
}

// TestHostileListings has servers whose listings are wrong.
func TestHostileListings(t *testing.T) {
	item := func(name, size string) string {
		return fmt.Sprintf(`{"items": [{"name": %q, "size": %q, "generation": "1", "timeCreated": "2026-01-31T10:00:00Z"}]}`, name, size)
	}
	for name, test := range map[string]struct{ page, want string }{
		"the same token":      {`{"nextPageToken": "x"}`, "without a continuation token"},
		"elsewhere":           {item("q/db/1/x", "1"), `listed "q/db/1/x", which does not have the prefix`},
		"directory elsewhere": {`{"prefixes": ["q/"]}`, `listed "q/", which does not have the prefix`},
		"negative":            {item("p/db/1/x", "-1"), `with -1 bytes`},
		"no number":           {item("p/db/1/x", "1e3"), `with "1e3" bytes`},
		"too large":           {item("p/db/1/x", "99999999999999999999"), `bytes`},
		"no generation":       {`{"items": [{"name": "p/db/1/x", "size": "1", "timeCreated": "2026-01-31T10:00:00Z"}]}`, "without what identifies it"},
		"no time":             {`{"items": [{"name": "p/db/1/x", "size": "1", "generation": "1"}]}`, "without what identifies it, or its time"},
		"no JSON":             {`<p>Welcome`, "no JSON"},
		"not an object":       {`[1]`, "no JSON"},
		"deep":                {strings.Repeat("[", 100_000), "no JSON"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.page) }))
		c, err := open(t, at(server.URL, "p")).Contents(t.Context(), "db", "1")
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "gs://bucket/p/db/1/") {
			t.Errorf("%s: %v, %v, want %q", name, c, err, test.want)
		}
		server.Close()
	}
}

// TestDots: names with .. stay names, and no file with one can be opened.
func TestDots(t *testing.T) {
	s := newServer(t)
	for _, key := range []string{"p/db/1/part-0", "p/db/1/../2/part-0", "p/db/1/day=1/../../../part-0", "p/db/1//part-0", "p/db/1/day=1//part-0", "p/../x/y"} {
		s.put(key, []byte("x"))
	}
	src := open(t, at(s.URL, "p"))
	c, err := src.Contents(t.Context(), "db", "1")
	if err != nil || len(c.Files) != 1 || c.Files[0].Name != "part-0" {
		t.Errorf("%+v, %v", c, err)
	}
	if dbs, err := source.Databases(t.Context(), src); err != nil || len(dbs) != 1 {
		t.Errorf("%v, %v", dbs, err)
	}
	for _, name := range []string{"../2/part-0", "day=1/../../../part-0", "/part-0"} {
		if _, err := src.Open(t.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEndlessAnswer: an answer that does not end is not read for ever.
func TestEndlessAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"prefixes": ["`)
		some := []byte(strings.Repeat("x", 1<<20))
		for {
			if _, err := w.Write(some); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if _, err := source.Databases(t.Context(), open(t, at(server.URL, "p"))); err == nil || !strings.Contains(err.Error(), "an answer of more than") {
		t.Errorf("%v", err)
	}
}

// TestConditions: a request names the generation that was listed or opened.
func TestConditions(t *testing.T) {
	for what, change := range map[string]func(s *server){
		"replaced": func(s *server) { s.put("db/1/file", noise.Random(1, 4<<20)) },
		"emptied":  func(s *server) { s.put("db/1/file", nil) },
		"removed":  func(s *server) { s.remove("db/1/file") },
	} {
		s := newServer(t)
		s.put("db/1/file", make([]byte, 4<<20))
		src := open(t, at(s.URL, ""))
		listed, err := src.Contents(t.Context(), "db", "1")
		expect.NoError(t, err)
		f, err := src.Open(t.Context(), "db", "1", listed.Files[0], source.ReadOptions{})
		expect.NoError(t, err)
		change(s)
		want := source.ErrChanged
		if what == "removed" {
			want = fs.ErrNotExist
		}
		if _, err := io.Copy(io.Discard, f); !errors.Is(err, want) {
			t.Errorf("%s while it is read: %v", what, err)
		}
		f.Close()
		if _, err := src.Open(t.Context(), "db", "1", listed.Files[0], source.ReadOptions{}); !errors.Is(err, want) {
			t.Errorf("%s after it was listed: %v", what, err)
		}
	}
}

// TestRetryAfter: the pause is at least what a server asks for.
func TestRetryAfter(t *testing.T) {
	s := newServer(t)
	s.put("db/1/file", []byte("x"))
	var first time.Time
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !first.IsZero() {
			return false
		}
		first = time.Now()
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	if _, err := source.Databases(t.Context(), open(t, at(s.URL, ""))); err != nil || time.Since(first) < time.Second {
		t.Errorf("%v after %v", err, time.Since(first))
	}
}

// TestStoredEncoding: an object is read as it is stored, although a server would decompress it.
func TestStoredEncoding(t *testing.T) {
	s := newServer(t)
	s.put("db/1/file", []byte("stored"))
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("alt") == "media" && r.Header.Get("Accept-Encoding") != "gzip" {
			fail(w, http.StatusBadRequest, "the answer would be decompressed")
			return true
		}
		return false
	}
	if b, err := read(t, open(t, at(s.URL, ""))); err != nil || string(b) != "stored" {
		t.Errorf("%q, %v", b, err)
	}
}

// tokenServer issues tokens.
type tokenServer struct {
	*httptest.Server
	requests int
	next     func() (token string, seconds int, status int)
}

func newTokenServer(t testing.TB, next func() (string, int, int)) *tokenServer {
	s := &tokenServer{next: next}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests++
		token, seconds, status := s.next()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		answer(w, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": seconds, "error": "invalid_grant"})
	}))
	t.Cleanup(s.Close)
	return s
}

// federation writes a description of workload identity federation, whose tokens a server issues.
func federation(t testing.TB, path, tokenURL string) string {
	t.Helper()
	doc, err := json.Marshal(map[string]string{"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": tokenURL})
	expect.NoError(t, err)
	subject := path + ".subject"
	doc = []byte(strings.TrimSuffix(string(doc), "}") + fmt.Sprintf(`, "credential_source": {"file": %q}}`, subject))
	expect.NoError(t, errors.Join(os.WriteFile(path, doc, 0o600), os.WriteFile(subject, []byte("a JWT of the cluster"), 0o600)))
	return path
}
