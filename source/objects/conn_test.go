package objects

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"sequins/test/expect"
)

// Only a range that was asked for is longer than an answer that is parsed.
func TestLongAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/part" {
			w.WriteHeader(http.StatusPartialContent)
		}
		for piece := make([]byte, 1<<20); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	client := new(Options).Client()
	for _, test := range []struct {
		path, field string
		limited     bool
	}{{"/", "", true}, {"/part", "", true}, {"/", "Range", true}, {"/part", "Range", false}, {"/part", "X-Ms-Range", false}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+test.path, nil)
		expect.NoError(t, err)
		if test.field != "" {
			req.Header.Set(test.field, "bytes=0-")
		}
		resp, err := client.Do(req)
		expect.NoError(t, err)
		if n, err := io.CopyN(io.Discard, resp.Body, maxAnswer+1); (err != nil) != test.limited {
			t.Errorf("%+v: %d bytes, %v", test, n, err)
		}
		resp.Body.Close()
	}
}

// Of a long answer, only the beginning is made a line.
func TestOneLine(t *testing.T) {
	long := strings.Repeat("a \n", 4<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := OneLine(long); len(got) > 600 || !strings.HasPrefix(got, "a a a") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes allocated", after.TotalAlloc-before.TotalAlloc)
	}
}

// A server that asks for a long pause gets the longest one, and then the request again.
func TestLongPause(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", asked)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	client := new(Options).Client()
	for ask, want := range map[string]string{"30": "10", "10": "10", "2": "2", "": "", "soon": "soon"} {
		asked = ask
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		expect.NoError(t, err)
		resp, err := client.Do(req)
		expect.NoError(t, err)
		if got := resp.Header.Get("Retry-After"); got != want {
			t.Errorf("%q: %q, want %q", ask, got, want)
		}
		resp.Body.Close()
	}
}
