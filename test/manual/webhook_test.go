//go:build integration

package manual

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"sequins/test/process"
)

// inbox receives events. It refuses the first requests.
type inbox struct {
	mu       sync.Mutex
	refuse   int
	requests []*http.Request
	bodies   []string
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse--; b.refuse >= 0 || err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	b.requests, b.bodies = append(b.requests, r), append(b.bodies, string(body))
}

// kinds are the kinds and versions of the events so far, in their order.
func (b *inbox) kinds(t *testing.T) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, body := range b.bodies {
		var e struct{ Kind, Version, DB, Node string }
		if err := json.Unmarshal([]byte(body), &e); err != nil || e.DB != "words" || e.Node != "localhost" {
			t.Errorf("%s: %v", body, err)
		}
		all = append(all, e.Kind+" "+e.Version)
	}
	return all
}

// testSigned has a node send events to a receiver that is away at first, and checks their signatures with a program in
// Python that has a function verify.
func testSigned(t *testing.T, program string) {
	const secret = "the-secret-of-the-webhook"
	box := &inbox{refuse: 2}
	server := httptest.NewServer(box)
	defer server.Close()
	source := filepath.Join(t.TempDir(), "source")
	writeWords(t, source, "1", 1000)
	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Extra: `refresh_period = "200ms"`,
		Sections: "[gate]\nmax_shrink = 0.2\n[events]\nwebhook = \"" + server.URL + "\"\nsecret = \"" + secret + "\"\n"})
	n.WaitCurrent(t, "words", "1")
	writeWords(t, source, "2", 400)
	n.WaitFor(t, "it is held", func() bool { return n.Health(t)["words"]["2"].State == "HELD" })
	writeWords(t, source, "3", 900)
	n.WaitCurrent(t, "words", "3")
	runIt(t, n, "sequins rollback words 3 --server "+n.Addr+" --wait")
	want := []string{"found 1", "loaded 1", "active 1", "found 2", "loaded 2", "held 2", "found 3", "loaded 3", "active 3", "pinned ", "active 1", "rolled_back 1"}
	n.WaitFor(t, "all events have arrived", func() bool {
		got := slices.DeleteFunc(box.kinds(t), func(e string) bool { return !slices.Contains(want, e) }) // versions are also removed, and found again
		return len(got) >= len(want)
	})
	position := -1
	for _, e := range want[:9] { // up to the rollback there is one order
		i := slices.Index(box.kinds(t), e)
		if i <= position {
			t.Errorf("%s is not behind the one before: %q", e, box.kinds(t))
		}
		position = i
	}
	for i, r := range box.requests {
		for secret, good := range map[string]string{secret: "True", "another": "False"} {
			out, err := exec.Command("python3", "-c", program+"\nimport sys\nprint(verify(sys.argv[1], sys.argv[2], sys.argv[3].encode()))",
				secret, r.Header.Get("X-Sequins-Signature"), box.bodies[i]).CombinedOutput()
			if err != nil || string(out) != good+"\n" {
				t.Fatalf("verify with %s: %v: %s", secret, err, out)
			}
		}
	}
}
