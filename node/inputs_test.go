package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
)

// TestPreparedVersionHasChanged: this node has looked at a version while its job was writing, and another node later. This
// one loads the version again at once, and only if its files have changed, whoever the other is.
func TestPreparedVersionHasChanged(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := f.follow(t, func(o *Options) {
			o.Cluster, o.Settle, o.RefreshPeriod, o.MinReplication = c, 3*time.Second, time.Hour, 2
			o.each(always)
		})
		time.Sleep(10 * time.Second)
		first := c.division("1")
		set := n.Set([]byte("fruit"))
		if first == "" || set.Current().Name != "" || len(c.has("1")) != 1 {
			t.Fatalf("planned %q, current is %q, advertised %v", first, set.Current().Name, c.has("1"))
		}
		f.putFile("fruit/1/part-r-00001", "1", "plum")
		time.Sleep(2 * time.Minute)
		if f.log.count("load started") != 1 {
			t.Fatal("nobody holds another input of it, and it is loaded again")
		}
		c.other("1", "another")
		time.Sleep(5 * time.Second) // settle
		if second := c.division("1#2"); second == "" || len(c.has("1#2")) != 2 || set.Current().Name != "" {
			t.Fatalf("planned %q; advertised %v, current is %q", second, c.has("1#2"), set.Current().Name)
		}
		c.hold("1#2", 0, 1)
		time.Sleep(time.Second)
		if c.label(set.Current().Input) != "1#2" || f.log.count("load started") != 2 {
			t.Errorf("current is %q after %d loads", c.label(set.Current().Input), f.log.count("load started"))
		}
		c.other("1", "an older one") // of a node that has yet to look again
		time.Sleep(3 * time.Hour)
		if f.log.count("load started") != 2 || len(n.Status().Problems) > 0 {
			t.Errorf("this node has the files of the source: %d loads, %q", f.log.count("load started"), n.Status().Problems)
		}
	})
}

// TestActiveVersionHasChanged: clients are answered from the files that were loaded first until those of the source now are
// loaded, as between any two versions, also over a restart. Clients see the name of the version.
func TestActiveVersionHasChanged(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		settings := func(o *Options) {
			o.Cluster, o.Settle, o.RefreshPeriod = c, 3*time.Second, 5*time.Minute
			o.each(always)
		}
		n := f.follow(t, settings)
		time.Sleep(10 * time.Second)
		set := n.Set([]byte("fruit"))
		f.putFile("fruit/1/part-r-00001", "1", "plum")
		f.damage("fruit", "1", "part-r-00001")
		c.other("1", "another")
		time.Sleep(20 * time.Second)
		s := n.Status()
		v := s.DBs["fruit"].Versions["1"].Nodes["localhost"]
		if problems := strings.Join(s.Problems, "\n"); set.Current().Name != "1" || !v.Diverged || !v.Current || v.Error != problems ||
			!strings.Contains(problems, "version 1 of fruit") || !strings.Contains(problems, "part-r-00001") || len(s.DBs["fruit"].Versions) != 1 {
			t.Errorf("current %q, problems %q, %+v", set.Current().Name, problems, v)
		}
		if n := f.log.count("level=WARN", "was loaded from something else"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		f.putFile("fruit/1/part-r-00001", "1", "plum")
		c.other("1")
		time.Sleep(10 * time.Minute)
		h := set.Acquire()
		if s := n.Status(); c.label(set.Current().Input) != "1#3" || h.Name != "1" || h.Partitions != 2 ||
			len(s.Problems) > 0 || len(s.DBs["fruit"].Versions) != 1 {
			t.Errorf("current %q, version %q of %d, problems %q", set.Current().Name, h.Name, h.Partitions, s.Problems)
		}
		h.Release()
		n.stop()
		if got := f.onDisk("fruit"); got != "1" {
			t.Errorf("on disk: %s", got)
		}
		n = f.follow(t, settings)
		time.Sleep(10 * time.Second)
		if got := c.label(n.Set([]byte("fruit")).Current().Input); got != "1#3" || f.log.count("load started") != 2 {
			t.Errorf("after a restart it serves %q, %d loads", got, f.log.count("load started"))
		}
		f.put("fruit", "10", 1, "fig")
		n.Refresh()
		time.Sleep(10 * time.Second)
		n.expectCurrent(t, "fruit", "10") // a newer version is there
	})
}

// TestContentThatNobodyShares: a node that has lost its disk loads a version from other fields than the other nodes. It says so
// until there is a node with its content.
func TestContentThatNobodyShares(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := f.follow(t, func(o *Options) { o.Cluster, o.RefreshPeriod = c, time.Minute })
		time.Sleep(10 * time.Second)
		c.other("1", "another")
		time.Sleep(5 * time.Minute)
		s := n.Status()
		problems, v := strings.Join(s.Problems, "\n"), s.DBs["fruit"].Versions["1"].Nodes["localhost"]
		if !strings.Contains(problems, "other files or fields") || v.Error != problems || v.Diverged {
			t.Errorf("problems %q, %+v", problems, v)
		}
		if n := f.log.count("level=ERROR", "other nodes have loaded version 1 of fruit"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		c.hold("1", 0)
		time.Sleep(2 * time.Minute)
		if got := n.Status().Problems; len(got) > 0 {
			t.Errorf("another node shares the content: %q", got)
		}
	})
}

// A waitingInput is a node that serves version 2, whose partitions other nodes hold, while another input of it waits for
// other nodes. Version 1 is still on its disk.
type waitingInput struct {
	t *testing.T
	f *fixture
	c *testCluster
	n *following
}

// restart starts the node in a new cluster, in which no other node holds anything.
func (w *waitingInput) restart(owned []int) {
	w.c = newCluster()
	w.c.owned = owned
	w.n = w.f.follow(w.t, func(o *Options) {
		o.Cluster, o.RefreshPeriod, o.VersionRemoveTimeout = w.c, time.Minute, 10*time.Minute
	})
}

func (w *waitingInput) current() string { return w.c.label(w.n.Set([]byte("fruit")).Current().Input) }

// waitForInput is called in a synctest bubble, with version 1 in the source. The node is stopped at the end.
func waitForInput(t *testing.T, f *fixture) *waitingInput {
	t.Helper()
	w := &waitingInput{t: t, f: f}
	w.restart(nil)
	time.Sleep(10 * time.Second)
	w.c.own()
	f.put("fruit", "2", 2, fruit...)
	w.c.hold("2", 0, 1)
	w.n.Refresh()
	time.Sleep(10 * time.Second)
	f.putFile("fruit/2/part-r-00001", "2", "plum")
	w.c.other("2", "another")
	time.Sleep(20 * time.Second)
	set := w.n.Set([]byte("fruit"))
	if set.Current().Name != "2" || w.c.division("2#2") == "" || named(set, "1") == nil {
		t.Fatalf("current is %q, %s on disk", set.Current().Name, f.onDisk("fruit"))
	}
	w.n.stop()
	return w
}

// TestRestartWhileAnInputWaits: a version whose input is not in the listing, because its files have changed, is
// not lost: a restart that finds nobody with it waits for the other nodes, and does not go back.
func TestRestartWhileAnInputWaits(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		w := waitForInput(t, f)
		w.restart([]int{}) // the others are not there yet
		time.Sleep(10 * time.Second)
		if got := w.current(); got != "" {
			t.Fatalf("after a restart it serves %q", got)
		}
		w.c.hold("2#2", 0, 1)
		time.Sleep(time.Second)
		if got := w.current(); got != "2#2" {
			t.Errorf("when others hold the input of the source, it serves %q", got)
		}
	})
}

// TestTouchedFiles: other modification times alone do not keep a node from holding what it owns.
func TestTouchedFiles(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{0}
		c.hold("1", 1)
		n := f.follow(t, func(o *Options) { o.Cluster, o.RefreshPeriod = c, time.Minute })
		time.Sleep(10 * time.Second)
		for _, file := range []string{"part-r-00000", "part-r-00001"} {
			expect.NoError(t, os.Chtimes(filepath.Join(f.root, "fruit/1", file), time.Time{}, time.Unix(1700000000, 0)))
		}
		c.own(0, 1)
		c.hold("1") // the other node is lost
		time.Sleep(2 * time.Minute)
		set := n.Set([]byte("fruit"))
		if v := set.Version(set.Current().Input); set.Current().Name != "1" || slices.Contains(v.Held(), false) {
			t.Errorf("current is %q, held %v", set.Current().Name, v.Held())
		}
	})
}

// TestHalfRewritten: the marker of a version does not say that a change of its files is complete.
func TestHalfRewritten(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	rewrite := func(i int) {
		f.putFile(fmt.Sprintf("fruit/1/part-r-%05d", i), "rewritten", inFile(i, 2, fruit)...)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := f.follow(t, func(o *Options) { o.Cluster, o.RefreshPeriod, o.Settle = c, time.Minute, 10*time.Second })
		time.Sleep(13 * time.Second) // it is served, and not yet compared
		set := n.Set([]byte("fruit"))
		rewrite(0)
		c.other("1", "the half")
		time.Sleep(5 * time.Second) // the next file is still being written
		rewrite(1)
		if set.Current().Name != "1" || f.log.count("load started") != 1 {
			t.Fatalf("half of it: current is %q", set.Current().Name)
		}
		time.Sleep(5 * time.Minute)
		if c.label(set.Current().Input) != "1#2" {
			t.Fatalf("all of it: current is %q", set.Current().Name)
		}
		c.other("1")
		f.putFile("fruit/1/part-r-00001", "late", "plum")
		time.Sleep(20 * time.Minute)
		if c.label(set.Current().Input) != "1#3" {
			t.Errorf("changed again, and current is %q", set.Current().Name)
		}
	})
}
