//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
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
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 16}, members: 5, replication: 2,
		extra: "keep_versions = 2\nthrottle_loads = \"8ms\"\n"}) // a load takes some seconds
	first, bad, next := versionName(1), versionName(2), versionName(3)
	c.begin(t, first)
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

// TestRollbackBehindDamage excludes the version that three nodes serve while a newer one has a bad record in a file that one of them does not read. That
// node has all that it needs of the newer one, which the others never will have, and goes back with them all the same.
func TestRollbackBehindDamage(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 600, partitions: 6}, members: 3, replication: 2})
	good, wrong, damaged := versionName(1), versionName(2), versionName(3)
	c.begin(t, good)
	c.publish(t, wrong)
	c.waitServed(t, wrong)
	away := t.TempDir()
	c.data.publish(t, away, damaged)
	dir := filepath.Join(away, db, damaged)
	long := strings.Repeat("x", 65<<10) // too long for a key
	for c.data.partition(long) != 2 {
		long += "x"
	}
	sequencefiles.WriteFile(t, filepath.Join(dir, "part-r-00002"), sequencefiles.WriterOptions{}, func(add func(key, value string)) { add(long, "") })
	expect.NoError(t, os.Rename(dir, filepath.Join(c.source, db, damaged)))
	clients := c.watchVersions(t)
	c.members[0].node.WaitFor(t, "two nodes have failed to load it", func() bool {
		return len(slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return m.node.Health(t)[db][damaged].State != "ERROR" })) == 2
	})
	c.pin(t, `exclude = ["`+wrong+`"]`)
	c.waitServed(t, good)
	clients.finish(t, []string{wrong, good})
}

// watchers are clients that each ask one node again and again.
type watchers struct {
	stop atomic.Bool
	wg   sync.WaitGroup
	of   func(version string) []dataset // what the source has or had under the name of a version
	mu   sync.Mutex
	seen map[string][]string // by node: the versions, in order, each run once
	errs []string
}

// watchVersions lets a client ask each node that is up.
func (c *cluster) watchVersions(t testing.TB) *watchers {
	return c.watchContents(t, func(string) []dataset { return []dataset{c.data} })
}

// watchContents is watchVersions for versions of several contents.
func (c *cluster) watchContents(t testing.TB, of func(version string) []dataset) *watchers {
	w := &watchers{seen: map[string][]string{}, of: of}
	for _, m := range c.live() {
		w.wg.Go(func() { w.ask(c, m, false) })
	}
	t.Cleanup(func() { w.stop.Store(true); w.wg.Wait() })
	for _, m := range c.live() {
		process.Eventually(t, m.name+" answers its client", func() bool { return w.last(m) != "" })
	}
	return w
}

// watchStart lets a client ask a member that is being started. Until the first answer it may refuse, and answer 503.
func (w *watchers) watchStart(c *cluster, m *member) { w.wg.Go(func() { w.ask(c, m, true) }) }

// ask asks a member until the end, and then once more, so that it sees what the member served before.
func (w *watchers) ask(c *cluster, m *member, starting bool) {
	client := process.NewClient(m.addr())
	defer client.Close()
	for n, last := 0, false; !last; n = (n + 37) % c.data.keys {
		last = w.stop.Load()
		key := c.data.key(n)
		a, err := client.Get("/" + db + "/" + key)
		w.mu.Lock()
		switch {
		case starting && (err != nil || a.Code == 503):
		case err != nil:
			w.errs = append(w.errs, m.name+": "+err.Error())
		case a.Code >= 500 || a.Version() == "":
			w.errs = append(w.errs, fmt.Sprintf("%s: %s: %d, %.200s", m.name, key, a.Code, a.Body))
		default:
			starting = false
			if !slices.ContainsFunc(w.of(a.Version()), func(d dataset) bool { return d.holds(key, a) }) {
				w.errs = append(w.errs, fmt.Sprintf("%s: %s of %q: %d, %.100s", m.name, key, a.Version(), a.Code, a.Body))
			}
			if seen := w.seen[m.name]; len(seen) == 0 || seen[len(seen)-1] != a.Version() {
				w.seen[m.name] = append(seen, a.Version())
			}
		}
		w.mu.Unlock()
		time.Sleep(pace)
	}
}

// holds reports whether an answer is what the data has for a key.
func (d dataset) holds(key string, a *process.Response) bool {
	want, there := d.value(key, a.Version())
	return there && a.Code == 200 && string(a.Body) == want || !there && a.Code == 404
}

// last is the version of the last answer of a member, "" before the first.
func (w *watchers) last(m *member) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.seen[m.name]; len(seen) > 0 {
		return seen[len(seen)-1]
	}
	return ""
}

// finish ends the clients. Each must have seen all of some versions in their order, and nothing else.
func (w *watchers) finish(t testing.TB, want []string) {
	t.Helper()
	w.end(t)
	for name, seen := range w.seen {
		if !slices.Equal(seen, want) {
			t.Errorf("%s has answered from %v, want %v", name, seen, want)
		}
	}
}

// end ends the clients and fails the test for what they have complained of.
func (w *watchers) end(t testing.TB) {
	t.Helper()
	w.stop.Store(true)
	w.wg.Wait()
	for i, err := range w.errs {
		if t.Error(err); i == 10 {
			t.Fatalf("and %d more", len(w.errs)-i)
		}
	}
}
