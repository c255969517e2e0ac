//go:build integration

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// Pages of an allowed origin can do all that clients do, with a real browser between them and the node; those of others nothing.
func TestCORS(t *testing.T) {
	t.Parallel()
	source, c := newSource(t)
	publish(t, source, "words", "1", 2, 100)
	files, err := filepath.Glob(filepath.Join(source, "words", "1", "part-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files { // by its age, a browser would keep a value for days
		expect.NoError(t, os.Chtimes(f, time.Now(), time.Now().AddDate(0, 0, -100)))
	}
	var data atomic.Value // the attributes of the pages
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><link rel=icon href=data:,><title>app</title><body %s>", data.Load())
	})
	allowed, other := httptest.NewServer(pages), httptest.NewServer(pages)
	defer allowed.Close()
	defer other.Close()
	c.Sections = fmt.Sprintf("[http]\nallowed_origins = [%q]\ncompression = [\"zstd\", \"gzip\"]\n", allowed.URL)
	n := process.Serve(t, c, "words", "1")
	data.Store(fmt.Sprintf("data-node=%q data-other=%q", "http://"+n.Addr, other.URL))
	script(t, "cors", strings.TrimPrefix(allowed.URL, "http://"), map[string]func(){"revalidated": func() {
		if m := n.Metrics(t); !strings.Contains(m, `sequins_requests_total{code="304",db="words",route="key"}`) {
			t.Error("the browser has not asked again for a value that it had")
		}
	}})
}
