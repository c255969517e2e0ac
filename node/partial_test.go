package node

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/fsys"
	"sequins/load"
	"sequins/node/turns"
	"sequins/store"
	"sequins/test/expect"
)

// TestRestartWhileAPartitionIsGone: a node serves what it served before the restart, also if a partition of it, which
// belongs to others, is on no node any more.
func TestRestartWhileAPartitionIsGone(t *testing.T) {
	for name, down := range map[string]bool{"source up": false, "source down": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("fruit", "1", 3, fruit...)
			synctest.Test(t, func(t *testing.T) {
				run := func(held ...int) *following {
					c := newCluster()
					c.owned = []int{0}
					c.hold("1", held...)
					return f.follow(t, func(o *Options) { o.Cluster, o.RefreshPeriod = c, time.Minute })
				}
				n := run(1, 2)
				time.Sleep(10 * time.Second)
				n.stop()
				f.source.down.Store(down)
				n = run(1)
				time.Sleep(wholeTimeout / 2)
				n.expectCurrent(t, "fruit", "") // other nodes have had no time yet to advertise theirs
				time.Sleep(wholeTimeout)
				n.expectCurrent(t, "fruit", "1")
				if ready, why := n.Ready(""); !ready {
					t.Errorf("not ready: %s", why)
				}
			})
		})
	}
}

// TestRestartWithoutABlock: the other partitions are served while the block is loaded again, which takes long.
func TestRestartWithoutABlock(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	expect.NoError(t, os.Remove(filepath.Join(f.dir("fruit", "1"), "00001.block")))
	g, open := f.source.shut()
	r = f.run()
	<-g.waiting
	served := 0
	for _, key := range fruit {
		switch got := r.get("/fruit/" + key); {
		case got.status == 200 && got.body == key+" of 1":
			served++
		case got.status != 500:
			t.Errorf("%s: %+v", key, got)
		}
	}
	if served == 0 || served == len(fruit) {
		t.Errorf("%d of %d keys are served", served, len(fruit))
	}
	open()
	r.eventually("the block is loaded again", func() bool { return len(r.onNode("fruit", "1").Partitions) == 2 })
}

// TestVersionsFasterThanLoads: a node goes on to newer versions, although one comes before the last is loaded.
func TestVersionsFasterThanLoads(t *testing.T) {
	f := newFixture(t)
	name := func(i int) string { return fmt.Sprintf("%05d", i) }
	f.put("fruit", name(0), 1, fruit...)
	r := f.run(func(o *Options) {
		o.RefreshPeriod = 20 * time.Millisecond
		o.each(func(d *DB) { d.Load = load.Options{Throttle: 30 * time.Millisecond, Workers: 1} })
	})
	r.serves("fruit", name(0))
	found := func(v string) bool {
		_, found := r.Status().DBs["fruit"].Versions[v]
		return found
	}
	deadline := time.Now().Add(patience)             // loads have the lowest priority
	for i := 1; r.current("fruit") == name(0); i++ { // the next one as soon as this one loads
		if time.Now().After(deadline) {
			t.Fatalf("%d versions have come, and none is served", i)
		}
		f.put("fruit", name(i), 1, fruit...)
		r.eventually(name(i)+" is found", func() bool { return found(name(i)) || r.current("fruit") >= name(i) })
	}
}

// TestSwitchWhileWaitingForATurn: a load that waits for those of other databases keeps no node on a version that the
// other nodes have left.
func TestSwitchWhileWaitingForATurn(t *testing.T) {
	f, first, _ := divisions(t)
	r := f.run() // the peer
	r.serves("fruit", "1")
	r.update("fruit", "2", 2, fruit...)
	r.stop()
	second := f.manifest("fruit", "2")
	f.remove("fruit", "2")
	f.store = filepath.Join(t.TempDir(), "store")
	peer, c := f.giver(), newCluster()
	peer.gives("fruit", first)
	peer.gives("fruit", second)
	c.addr, c.owned = peer.addr, []int{0}
	c.hold("1", 1, 2)
	r = f.run(func(o *Options) { o.Cluster, o.MaxParallelLoads = c, 1 })
	r.serves("fruit", "1")
	other := r.turns.Turn()
	other.Set(turns.Terms{}) // another db loads for hours
	r.eventually("it has the only turn", func() bool {
		select {
		case <-other.Granted():
			return true
		default:
			return false
		}
	})
	f.put("fruit", "2", 2, fruit...)
	r.Refresh()
	r.eventually("it waits", func() bool { return r.onNode("fruit", "2").Detail == "waiting for other databases' loads" })
	c.holdsOther("2", second.Content())
	c.hold("2", 0, 1)
	r.serves("fruit", "2")
	other.Leave()
	r.eventually("it is loaded after its turn", func() bool {
		v := r.onNode("fruit", "2")
		return len(v.Partitions) == 1 && v.Error == ""
	})
}

// badDir is a disk on which a directory cannot be read.
type badDir struct {
	fsys.FS
	suffix string
}

func (b *badDir) ReadDir(name string) ([]os.DirEntry, error) {
	if strings.HasSuffix(name, b.suffix) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.EIO}
	}
	return b.FS.ReadDir(name)
}

// TestUnreadableDirectory: a node starts and serves its other databases if it cannot read the directory of one.
func TestUnreadableDirectory(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("nuts", "1", 1, "almond")
	r := f.run()
	r.serves("fruit", "1")
	r.serves("nuts", "1")
	r.stop()
	synctest.Test(t, func(t *testing.T) {
		local := f.storeOn(&badDir{fsys.OS, "data/fruit"})
		f.source.down.Store(true)
		n := f.follow(t, func(o *Options) { o.Store = local })
		time.Sleep(time.Minute)
		n.expectCurrent(t, "nuts", "1")
	})
}

// TestFilesAreDeleted: a version of which files are deleted from the source stays what it is on the nodes that hold it,
// also when a node that has lost its disk plans it by the files that are left.
func TestFilesAreDeleted(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.hold("1", 0, 1, 2)
		n := f.follow(t, func(o *Options) { o.Cluster, o.RefreshPeriod = c, time.Minute })
		time.Sleep(10 * time.Second)
		f.remove("fruit", "1", "part-r-00001")
		c.other("1", "of the files that are left")
		time.Sleep(5 * time.Minute)
		if got := n.current("fruit"); got != "1" || f.log.count("load started") != 1 {
			t.Errorf("current is %q", got)
		}
		if problems := n.Status().Problems; len(problems) != 1 || !strings.Contains(problems[0], "have been deleted from the source") {
			t.Errorf("problems %q", problems)
		}
		f.putFile("fruit/1/part-r-00001", "late", "plum")
		time.Sleep(5 * time.Minute)
		if got := c.label(n.Set([]byte("fruit")).Current().Input); got != "1#2" {
			t.Errorf("another file was written in its place, and current is %q", got)
		}
	})
}

// TestBlockOfAVersionWithoutMarker: a version was complete without a marker when it was planned, and a block of it is
// loaded again although markers are required now.
func TestBlockOfAVersionWithoutMarker(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	expect.NoError(t, os.Truncate(filepath.Join(f.dir("fruit", "1"), "00000.block"), 100))
	r = f.run(func(o *Options) { o.each(func(d *DB) { d.Load = load.Options{RequireSuccess: true} }) })
	r.eventually("the block is loaded again", func() bool { return len(r.onNode("fruit", "1").Partitions) == 1 })
}

// TestMarkerIsRemembered: a version without a marker is not taken for complete after a restart either, if the version
// that had one has been deleted or cannot be read meanwhile: the job is writing the next one. The status says so when it
// has not changed for long.
func TestMarkerIsRemembered(t *testing.T) {
	for name, upgraded := range map[string]bool{"from the beginning": false, "by a node whose store does not say so": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("fruit", "1", 1, fruit...)
			synctest.Test(t, func(t *testing.T) {
				run := func() *following {
					return f.follow(t, func(o *Options) { o.Settle, o.RefreshPeriod = 3*time.Second, time.Minute; o.each(always) })
				}
				n := run()
				time.Sleep(10 * time.Second)
				n.stop()
				if upgraded {
					f.state("fruit", func(s *store.State) { s.Marked = false })
					n := run()
					time.Sleep(10 * time.Second)
					n.stop()
				}
				f.remove("fruit", "1")
				f.unmarked("fruit", "2", "fig")
				at := time.Now()
				expect.NoError(t, os.Chtimes(filepath.Join(f.root, "fruit/2/part-r-00000"), at, at))
				n = run()
				time.Sleep(10 * time.Minute)
				const served = "version 1 of fruit is not in the source any more; it is served from its blocks, and not by nodes that have none"
				if got := n.Status().Warnings; len(got) != 1 || got[0] != served {
					t.Errorf("it has just been written, and warnings are %q", got)
				}
				time.Sleep(time.Hour)
				n.expectCurrent(t, "fruit", "1") // version 2 is still being written
				if got := n.Status().Warnings; len(got) != 2 || got[0] != served || !strings.Contains(got[1], "there is no _SUCCESS file yet") {
					t.Errorf("warnings are %q", got)
				}
			})
		})
	}
}

// A node that holds nothing of a db proxies it after a restart as before: without the source, when the version is
// gone from it, and when the db is.
func TestRestartOfANodeWithoutBlocks(t *testing.T) {
	for name, test := range map[string]struct{ change func(f *fixture) }{
		"the source is away":     {func(f *fixture) { f.source.down.Store(true) }},
		"the version is gone":    {func(f *fixture) { f.remove("fruit", "2") }},
		"the db is gone":         {func(f *fixture) { f.remove("fruit") }},
		"everything is the same": {func(*fixture) {}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("nuts", "1", 1, "almond")
			f.put("fruit", "1", 3, fruit...)
			f.put("fruit", "2", 3, fruit...)
			conf := func(o *Options) {
				c := newCluster()
				c.owned = []int{}
				c.hold("1", 0, 1, 2)
				c.hold("2", 0, 1, 2)
				o.Cluster = c
			}
			r := f.run(conf)
			r.serves("fruit", "2")
			r.stop()
			test.change(f)
			r = f.run(conf)
			r.serves("fruit", "2")
		})
	}
}
