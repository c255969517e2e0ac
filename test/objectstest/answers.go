package objectstest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sequins/source"
	"sequins/test/expect"
	"sequins/test/noise"
)

// meddle runs a proxy before a server, which answers requests itself if answer returns true, and changes other answers. It
// returns the endpoint that leads through it.
func meddle(t testing.TB, server Server, answer func(http.ResponseWriter, *http.Request) bool, change func(*http.Response)) string {
	t.Helper()
	upstream, err := url.Parse(server.Endpoint())
	expect.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = upstream.Scheme, upstream.Host
			r.Out.Host = r.In.Host // which is signed
		},
		ModifyResponse: func(r *http.Response) error {
			if change != nil {
				change(r)
			}
			return nil
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer == nil || !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + upstream.Path
}

// testTemporaryAnswers: each request is answered twice with errors that pass, each time with another one.
func testTemporaryAnswers(t *testing.T, s Store) {
	t.Parallel()
	server := s.shared()
	data := noise.Random(1, 1<<20)
	server.Put(t, "db/1/file", data)
	statuses := []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	var mu sync.Mutex
	seen, failed := map[string]int{}, 0
	endpoint := meddle(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		what := r.Method + r.URL.String() + r.Header.Get("Range") + r.Header.Get("X-Ms-Range")
		seen[what]++
		if seen[what] > 2 {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(statuses[failed%len(statuses)])
		failed++
		_, _ = io.WriteString(w, "<html>busy</html>")
		return true
	}, nil)
	src := s.open(t, s.options(endpoint, ""))
	if dbs, err := source.Databases(t.Context(), src); err != nil || len(dbs) != 1 {
		t.Errorf("databases: %v, %v", dbs, err)
	}
	readAll(t.Context(), t, src, data)
	if len(seen) < 3 || failed < len(statuses) {
		t.Errorf("%d kinds of requests were seen, and %d of them failed", len(seen), failed)
	}
}

// testLastingAnswers: an error that lasts is one of the call, after all retries.
func testLastingAnswers(t *testing.T, s Store) {
	t.Parallel()
	server := s.shared()
	server.Put(t, "db/1/file", []byte("x"))
	for status, retried := range map[int]bool{http.StatusServiceUnavailable: true, http.StatusForbidden: false, http.StatusNotFound: false, http.StatusBadRequest: false} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			endpoint := meddle(t, server, func(w http.ResponseWriter, r *http.Request) bool {
				requests.Add(1)
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "<html>a proxy says no</html>")
				return true
			}, nil)
			o := s.options(endpoint, "")
			o.MaxRetries = 2
			_, err := source.Databases(t.Context(), s.open(t, o))
			if err == nil || !strings.Contains(err.Error(), s.url(s.Bucket, "")) {
				t.Errorf("%v, want an error that names the bucket", err)
			}
			if errors.Is(err, fs.ErrPermission) != (status == http.StatusForbidden) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v has the wrong class", err)
			}
			if n := requests.Load(); retried && n != 3 || !retried && n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// testAlienAnswers: what answers everything with success is no store: nothing is listed as empty, or read, by its answers.
func testAlienAnswers(t *testing.T, s Store) {
	t.Parallel()
	server := s.shared()
	server.Put(t, "db/_PIN", []byte("x"))
	for name, body := range map[string]string{"empty": "", "HTML": "<html>a proxy says hello</html>", "JSON": `{"status":"ok"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := s.options(meddle(t, server, func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Last-Modified", "Mon, 05 Jan 2026 10:00:00 GMT")
				_, _ = io.WriteString(w, body)
				return true
			}, nil), "")
			o.MaxRetries = -1
			src := s.open(t, o)
			if dbs, err := source.Databases(t.Context(), src); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.url(s.Bucket, "")) {
				t.Errorf("databases: %v, %v", dbs, err)
			}
			f, err := src.Open(t.Context(), "db", "", source.File{Name: "_PIN"}, source.ReadOptions{})
			if err == nil {
				_, err = io.ReadAll(f)
				f.Close()
			}
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file: %v", err)
			}
		})
	}
}

// testCutPages: a listing ends in the middle, with a complete body by its length, and is no listing.
func testCutPages(t *testing.T, s Store) {
	server := s.shared()
	putAll(t, server, []string{"db/1/a", "db/1/b", "db/1/c"}, []byte("x"))
	endpoint := meddle(t, server, nil, func(r *http.Response) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		text = text[:len(text)/2]
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		r.ContentLength = int64(len(text))
		r.Header.Set("Content-Length", fmt.Sprint(len(text)))
	})
	o := s.options(endpoint, "")
	o.MaxRetries = 1
	if c, err := s.open(t, o).Contents(t.Context(), "db", "1"); err == nil || !strings.Contains(err.Error(), s.url(s.Bucket, "db/1/")) {
		t.Errorf("half of a listing: %v, %v", c, err)
	}
}

// testRedirects: no request, with its credentials, goes to a server that an answer names.
func testRedirects(t *testing.T, s Store) {
	if s.Redirects {
		return
	}
	server := s.shared()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		endpoint := meddle(t, server, func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, other.URL, status)
			return true
		}, nil)
		o := s.options(endpoint, "")
		o.MaxRetries = -1
		if dbs, err := source.Databases(t.Context(), s.open(t, o)); err == nil {
			t.Errorf("%d: %v", status, dbs)
		}
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
}
