//go:build integration

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/test/process"
)

// pin writes the file _PIN of the db, as one step.
func (c *cluster) pin(t testing.TB, text string) {
	t.Helper()
	path := filepath.Join(c.source, db, "_PIN")
	err := os.WriteFile(path+".tmp", []byte(text), 0o644)
	if err = errors.Join(err, os.Rename(path+".tmp", path)); err != nil {
		t.Fatal(err)
	}
}

// TestRollback excludes the version that five nodes serve. All that can see the source follow within seconds, also one
// without ZooKeeper, and while another version is being loaded, which goes live then; a node that was down follows when it is back. No
// client of one node sees versions alternate, or gets an error.
func TestRollback(t *testing.T) {
	t.Parallel()
	z := startZookeeper(t, 1)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 16}, members: 5, replication: 2,
		extra: "keep_versions = 2\nthrottle_loads = \"8ms\"\n"}) // a load takes some seconds
	first, bad, next := versionName(1), versionName(2), versionName(3)
	c.publish(t, first)
	c.startAll(t)
	c.waitServed(t, first)
	c.publish(t, bad)
	c.waitServed(t, bad)
	l := z.look(t)
	c.waitWhole(t, l, bad)
	c.waitWhole(t, l, first)

	down := c.members[4]
	down.terminate(t)
	clients := c.watchVersions(t)
	c.members[0].link.refuse()
	c.publish(t, next)
	c.members[1].node.WaitFor(t, "another version is being loaded", func() bool { return c.members[1].node.Health(t)[db][next].State == "BUILDING" })
	began := time.Now()
	c.pin(t, `exclude = ["`+bad+`"]`)
	c.waitServed(t, first)
	t.Logf("all that are up are back after %v", time.Since(began).Round(time.Millisecond))
	c.members[0].link.allow(t)
	down.start(t)
	c.waitServed(t, next)
	clients.finish(t, []string{bad, first, next})
}

// watchers are clients that each ask one node again and again.
type watchers struct {
	stop atomic.Bool
	wg   sync.WaitGroup
	mu   sync.Mutex
	seen map[string][]string // by node: the versions, in order, each run once
	errs []string
}

// watchVersions lets a client ask each node that is up.
func (c *cluster) watchVersions(t testing.TB) *watchers {
	w := &watchers{seen: map[string][]string{}}
	for _, m := range c.live() {
		w.wg.Go(func() { w.ask(c, m) })
	}
	t.Cleanup(func() { w.stop.Store(true); w.wg.Wait() })
	return w
}

func (w *watchers) ask(c *cluster, m *member) {
	client := process.NewClient(m.addr())
	defer client.Close()
	for n := 0; !w.stop.Load(); n = (n + 37) % c.data.keys {
		key := c.data.key(n)
		a, err := client.Get("/" + db + "/" + key)
		w.mu.Lock()
		switch {
		case err != nil:
			w.errs = append(w.errs, m.name+": "+err.Error())
		case a.Code >= 500:
			w.errs = append(w.errs, m.name+": "+key+": "+string(a.Body))
		default:
			if want, _ := c.data.value(key, a.Version()); a.Code == 200 && string(a.Body) != want {
				w.errs = append(w.errs, m.name+": "+key+" of "+a.Version()+" is "+string(a.Body))
			}
			if seen := w.seen[m.name]; len(seen) == 0 || seen[len(seen)-1] != a.Version() {
				w.seen[m.name] = append(seen, a.Version())
			}
		}
		w.mu.Unlock()
		time.Sleep(pace)
	}
}

// finish ends the clients. Each must have seen all of some versions in their order, and nothing else.
func (w *watchers) finish(t *testing.T, want []string) {
	t.Helper()
	w.stop.Store(true)
	w.wg.Wait()
	for name, seen := range w.seen {
		if !slices.Equal(seen, want) {
			t.Errorf("%s has answered from %v, want %v", name, seen, want)
		}
	}
	for i, err := range w.errs {
		if t.Error(err); i == 10 {
			t.Fatalf("and %d more", len(w.errs)-i)
		}
	}
}
