package node

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sequins/blocks"
	"sequins/test/expect"
	"sequins/version"
)

// flip changes bits of a block's first page behind the back of everybody.
func (f *fixture) flip(db, version, block string) {
	f.t.Helper()
	path := filepath.Join(f.dir(db, version), block)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	expect.NoError(f.t, err)
	defer file.Close()
	b := make([]byte, 16)
	_, err = file.ReadAt(b, 8)
	expect.NoError(f.t, err)
	for i := range b {
		b[i] ^= 0x55
	}
	_, err = file.WriteAt(b, 8)
	expect.NoError(f.t, err)
}

// damaged is how many blocks of a db are counted as damaged.
func (r *running) damaged(db string) float64 { return r.counted("sequins_checksum_failures_total", db) }

// counted is the value of a counter of a db.
func (r *running) counted(counter, db string) float64 {
	r.f.t.Helper()
	n, found := r.counts(r.f.t, counter, db)
	if !found {
		r.f.t.Fatalf("%s lacks %s", counter, db)
	}
	return n
}

// counts is the value of a counter of a db, and whether there is one.
func (n *Node) counts(t *testing.T, counter, db string) (value float64, found bool) {
	t.Helper()
	families, err := n.o.Metrics.Registry().Gather()
	expect.NoError(t, err)
	for _, f := range families {
		if f.GetName() != counter {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == db {
				return m.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}

// TestCorruptBlockIsLoadedAgain damages a block that is being served.
func TestCorruptBlockIsLoadedAgain(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	if n := r.damaged("fruit"); n != 0 { // and there from the start, so that one more can be seen
		t.Errorf("%v damaged blocks of none", n)
	}
	f.flip("fruit", "1", "00000.block")
	if got := r.get("/fruit/fig"); got.status != http.StatusInternalServerError {
		t.Fatalf("from a damaged page: %+v", got)
	}
	r.eventually("it is mended", func() bool { return r.get("/fruit/fig").body == "fig of 1" })
	if n := f.log.count("a block is damaged"); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	if n := r.damaged("fruit"); n != 1 {
		t.Errorf("it is counted as %v blocks", n)
	}
	r.eventually("and whole", func() bool {
		s := r.onNode("fruit", "1")
		return s.State == "ACTIVE" && s.Error == "" && s.Progress == nil && len(s.Partitions) == 1
	})
	aside, err := filepath.Glob(filepath.Join(f.dir("fruit", "1"), "*.corrupt"))
	if err != nil || len(aside) != 1 {
		t.Errorf("set aside: %q", aside)
	}
}

// TestCorruptBlockIsServedMeanwhile: the block cannot be loaded again, so one
// page of it stays unreadable, and the others do not.
func TestCorruptBlockIsServedMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	f.damage("fruit", "1", "part-r-00000")
	f.flip("fruit", "1", "00000.block")
	bad, good := 0, 0
	count := func() {
		bad, good = 0, 0
		for _, key := range fruit {
			switch got := r.get("/fruit/" + key); {
			case got.status == http.StatusInternalServerError:
				bad++
			case got.body == key+" of 1":
				good++
			}
		}
	}
	count()
	r.eventually("the reload fails", func() bool { return r.onNode("fruit", "1").Error != "" })
	if s := r.onNode("fruit", "1"); s.State != "ACTIVE" || !s.Current || len(s.Partitions) != 1 {
		t.Errorf("a damaged version that is being served: %+v", s)
	}
	before := []int{bad, good}
	count()
	if bad == 0 || good == 0 || bad != before[0] || good != before[1] || bad+good != len(fruit) {
		t.Errorf("%d keys bad, %d good; before %v", bad, good, before)
	}
	r.update("fruit", "2", 2, fruit...)
}

// TestCorruptBlockAtStart finds the damage before the block is served, and loads it again.
func TestCorruptBlockAtStart(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	path := filepath.Join(f.dir("fruit", "1"), "00001.block")
	expect.NoError(t, os.Truncate(path, 100))
	r = f.run()
	r.eventually("the block is loaded again", func() bool { return len(r.onNode("fruit", "1").Partitions) == 2 })
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 1" {
			t.Errorf("%s: %+v", key, got)
		}
	}
	if n := r.damaged("fruit"); n != 1 {
		t.Errorf("it is counted as %v blocks", n)
	}
}

// TestCorruptBlockOfChangedFiles: a block is not loaded from files that are not those it was made of, beside blocks that
// are. If no other node holds it, the whole version is loaded again.
func TestCorruptBlockOfChangedFiles(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	f.remove("fruit", "1")
	f.put("fruit", "1", 3, fruit...)
	f.flip("fruit", "1", "00000.block")
	for _, key := range fruit {
		r.get("/fruit/" + key)
	}
	was := r.Set([]byte("fruit")).Current()
	r.eventually("it is loaded again", func() bool { return r.Set([]byte("fruit")).Current() != was })
	if f.log.count("version failed") != 1 {
		t.Error("no block of other files was refused")
	}
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 1" || got.version != "1" {
			t.Errorf("%s: %+v", key, got)
		}
	}
}

// TestBlockUnderAnotherName: a block that is not the partition it is called is
// as good as a damaged one.
func TestBlockUnderAnotherName(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	dir := f.dir("fruit", "1")
	data, err := os.ReadFile(filepath.Join(dir, "00000.block"))
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "00001.block"), data, 0o644))
	r = f.run()
	r.eventually("the block is loaded again", func() bool { return len(r.onNode("fruit", "1").Partitions) == 2 })
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 1" {
			t.Errorf("%s: %+v", key, got)
		}
	}
	if f.log.count("is partition 0 of 2") != 1 {
		t.Error("nobody is told")
	}
}

// TestReportOfAPredecessor: damage of a version that has been replaced by one of the same name, when the db hears of
// it, is not the new one's.
func TestReportOfAPredecessor(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	d, in := (*r.follower.catalog.Load())["fruit"], r.Set([]byte("fruit")).Current().Input
	d.bg.send(func() {
		err := d.set.EachBlock(func(h *version.Handle, p int, b version.Block) error {
			if p == 0 {
				h.Report(p, b, blocks.ErrCorrupt)
			}
			return nil
		})
		expect.NoError(t, err)
		old := d.live[in]
		fresh, err := newLive("fruit", old.manifest, old.Following)
		if err != nil || !d.keeper.openBlocks(fresh) {
			t.Errorf("opening it again: %v", err)
			return
		}
		d.keeper.insert(fresh)
	})
	r.eventually("the report is heard", func() bool { return f.log.count("a block is damaged") == 1 })
	heard := make(chan []bool)
	d.bg.send(func() { heard <- d.live[in].v.Held() })
	if held := <-heard; !slices.Equal(held, []bool{true, true}) {
		t.Errorf("held of the new version: %v", held)
	}
	if got := f.log.count("load started"); got != 1 {
		t.Errorf("%d loads were started", got)
	}
}

// TestDamagedReplica: a block that is known to be damaged is no replica where another node holds the partition: that node
// must not give up its good one. It is one again when it has been loaded again.
func TestDamagedReplica(t *testing.T) {
	for name, others := range map[string][]int{"the only one": nil, "another node has one": {0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.put("fruit", "1", 1, fruit...)
			c := newCluster()
			r := f.run(func(o *Options) { o.Cluster = c })
			r.serves("fruit", "1")
			c.hold("1", others...)
			f.source.down.Store(true) // it cannot be loaded again at once
			f.flip("fruit", "1", "00000.block")
			r.get("/fruit/fig")
			r.eventually("the damage is known", func() bool { return r.onNode("fruit", "1").Error != "" })
			if got := len(c.has("1")); got != 1-len(others) {
				t.Errorf("%d partitions are advertised", got)
			}
			c.hold("1") // the other node dies
			r.eventually("the rest of it is advertised", func() bool { return len(c.has("1")) == 1 })
			f.source.down.Store(false)
			r.Refresh()
			r.eventually("it is loaded again", func() bool { return r.onNode("fruit", "1").Error == "" })
			if got := c.has("1"); !slices.Contains(got, 0) {
				t.Errorf("after it has been loaded again, %v are advertised", got)
			}
		})
	}
}
