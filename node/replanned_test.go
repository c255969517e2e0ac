package node

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sequins/load"
	"sequins/load/build"
	"sequins/observe/status"
	"sequins/shard"
	"sequins/source/local"
	"sequins/test/expect"
)

// lacks restarts a node that has served version 1 of fruit, from three files, and lacks the block of a partition since. Another partition's file
// has been deleted from the source meanwhile. The keys of that partition must be answered.
func (f *fixture) lacks(block, file string, then ...func(*Options)) {
	t := f.t
	t.Helper()
	if block != "" {
		expect.NoError(t, os.Remove(filepath.Join(f.dir("fruit", "1"), block)))
	}
	f.remove("fruit", "1", file)
	r := f.run(then...)
	r.serves("fruit", "1")
	r.eventually("a load has failed", func() bool { return r.onNode("fruit", "1").Error != "" })
	if m := f.manifest("fruit", "1"); len(m.Files) != 3 {
		t.Errorf("the version is planned anew, by %d files", len(m.Files))
	}
	gone := shard.FileIndex(file, 0)
	for _, key := range fruit {
		if a := r.get("/fruit/" + key); a.status == http.StatusNotFound || shard.String.Partition([]byte(key), 3) == gone && a.status != http.StatusOK {
			t.Errorf("%s: %d", key, a.status)
		}
	}
}

// A block of the served version is missing after a restart, and the source has lost another file of it. Nothing that is here is given up, also in a cluster,
// where the version is not active before other nodes are known that have it.
func TestServedIsNotPlannedAnew(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		f := newFixture(t)
		f.put("fruit", "1", 3, fruit...)
		r := f.run()
		r.serves("fruit", "1")
		r.stop()
		f.lacks("00001.block", "part-r-00002")
	})
	t.Run("in a cluster", func(t *testing.T) {
		f := newFixture(t)
		f.put("fruit", "1", 3, fruit...)
		in := func(o *Options) { o.Cluster = newCluster() }
		r := f.run(in)
		r.serves("fruit", "1")
		r.stop()
		f.lacks("00001.block", "part-r-00002", in)
	})
	// The node that has partition 2 is away at the restart.
	t.Run("for another node", func(t *testing.T) {
		f := newFixture(t)
		f.put("fruit", "1", 3, fruit...)
		c := newCluster()
		c.own(0, 1)
		c.hold("1", 2)
		r := f.run(func(o *Options) { o.Cluster = c })
		r.serves("fruit", "1")
		r.eventually("its own partitions are here", func() bool { return len(r.onNode("fruit", "1").Partitions) == 2 })
		r.stop()
		f.lacks("", "part-r-00000", func(o *Options) { o.Cluster = newCluster() })
	})
}

// A rollback to a version that lacks a block, and of which the source has lost a file, fails, and gives up none of its blocks.
func TestFormerIsNotPlannedAnew(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	r := f.run(keeping(2))
	r.serves("fruit", "1")
	r.update("fruit", "2", 3, fruit...)
	r.stop()
	expect.NoError(t, os.Remove(filepath.Join(f.dir("fruit", "1"), "00001.block")))
	f.remove("fruit", "1", "part-r-00002")
	r = f.run(keeping(2))
	r.serves("fruit", "2")
	f.pin("fruit", `version = "1"`)
	r.Refresh()
	r.eventually("the load has failed", func() bool { return r.onNode("fruit", "1").State == status.Error })
	r.serves("fruit", "2")
	if got := r.onNode("fruit", "1"); !slices.Equal(got.Partitions, []int{0, 2}) {
		t.Errorf("left of the former version: %+v", got)
	}
}

// Another node has version 1 of other files, which have been replaced in the source by finished blocks. They are loaded by what their manifest says.
func TestFinishedBesideAnotherInput(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "raw", 3, fruit...)
	src, err := local.New(f.root)
	expect.NoError(t, err)
	_, err = build.Run(t.Context(), build.Job{From: build.Place{Source: src, DB: "fruit", Version: "raw"}, To: filepath.Join(f.root, "fruit", "1"),
		Options: load.Options{Partitioner: "string"}, Release: "test"}, nil)
	expect.NoError(t, err)
	f.remove("fruit", "raw")
	c := newCluster()
	c.other("1", "of files")
	r := f.run(func(o *Options) { o.Cluster = c })
	r.serves("fruit", "1")
	if n := f.log.count("load started"); n != 1 {
		t.Errorf("%d loads", n)
	}
}
