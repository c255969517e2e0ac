package node

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sequins/load"
	"sequins/observe/status"
	"sequins/shard"
)

// A version that does not fit on the disk is not begun: nothing of it is written, the state says why, and former versions stay if
// they would not make room. It is loaded by itself when there is room.
func TestTooLittleRoom(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("fruit", "2", 2, fruit...)
	var free atomic.Int64
	free.Store(1 << 30)
	r := f.run(func(o *Options) {
		o.Loads.Free = func() (int64, bool) { return free.Load(), true }
		o.each(func(d *DB) { d.KeepVersions = 3 })
		o.MinFreeDisk = 1 << 20
	})
	r.serves("fruit", "2")
	free.Store(1<<20 + 10)
	f.put("fruit", "3", 2, fruit...)
	r.Refresh()
	r.eventually("it is an error", func() bool { return r.onNode("fruit", "3").State == status.Error })
	if v := r.onNode("fruit", "3"); !strings.Contains(v.Error, "the load has not begun: it needs about ") || !strings.Contains(v.Error, "0 B can be freed") {
		t.Errorf("the reason is %s", v.Error)
	}
	if disk := f.onDisk("fruit"); strings.Contains(disk, "3") {
		t.Errorf("on the disk are %s", disk)
	}
	if n := len(r.onNode("fruit", "2").Partitions); n != 2 {
		t.Errorf("%d partitions of the version that is served", n)
	}
	free.Store(1 << 30)
	r.serves("fruit", "3") // after a retry, without a refresh
}

// Former versions are let go when that makes room.
func TestRoomOfFormerVersions(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	var full atomic.Bool
	former := filepath.Join(f.store, "data/fruit/1")
	r := f.run(func(o *Options) {
		o.Loads.Free = func() (int64, bool) {
			if _, err := os.Stat(former); full.Load() && err == nil {
				return 10, true // a little less than it needs, which is about as much as the former version takes
			}
			return math.MaxInt64 / 2, true
		}
		o.each(func(d *DB) { d.KeepVersions = 2 })
	})
	r.serves("fruit", "1")
	r.update("fruit", "2", 2, fruit...)
	if _, err := os.Stat(former); err != nil {
		t.Fatalf("the former version is not kept: %v", err)
	}
	full.Store(true)
	r.update("fruit", "3", 2, fruit...)
	if _, err := os.Stat(former); err == nil {
		t.Error("the former version is still there")
	}
	if f.log.count("can be freed") != 1 {
		t.Error("the log does not have the reason once")
	}
}

// What a version needed when this node had to hold all of it does not keep the node from loading its share when others take theirs.
func TestRoomForFewerPartitions(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		f, c := newFixture(t), newCluster()
		c.own(0, 1, 2, 3)
		f.put("fruit", "1", 4, numbered("k", 4000)...) // about 130 KiB
		var free atomic.Int64
		r := f.run(func(o *Options) {
			o.Cluster, o.MinFreeDisk = c, 1<<20
			o.Loads.Free = func() (int64, bool) { return free.Load(), true }
			o.each(func(d *DB) { d.Load = load.Options{Throttle: time.Millisecond, Workers: 1} })
			if free.Store(1<<20 + 1<<16); ended {
				free.Store(1 << 30)
			}
		})
		if ended {
			r.eventually("a partition is complete", func() bool { return len(r.onNode("fruit", "1").Partitions) > 0 })
			free.Store(1 << 19)
		}
		r.eventually("it is an error", func() bool { return r.onNode("fruit", "1").State == status.Error })
		if v := r.onNode("fruit", "1").Error; strings.Contains(v, "the load has been ended") != ended {
			t.Fatal(v)
		}
		free.Store(1<<20 + 1<<16)
		r.Apply(*r.reloadable.Load())
		r.eventually("it is refused", func() bool { return strings.Contains(r.onNode("fruit", "1").Error, "the load has not begun") })
		c.own(0)
		c.hold("1", 1, 2, 3)
		r.Apply(*r.reloadable.Load())
		r.serves("fruit", "1")
		r.stop()
	}
}

// A load that is ended because the disk becomes full leaves nothing, also of partitions that were complete. It begins again when there
// is room, and not before, whoever asks for it.
func TestLoadEndedForRoom(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	var free atomic.Int64
	free.Store(1 << 30)
	r := f.run(func(o *Options) {
		o.Loads.Free = func() (int64, bool) { return free.Load(), true }
		o.MinFreeDisk = 1 << 20
		o.each(func(d *DB) { d.Load = load.Options{Throttle: 5 * time.Millisecond, Workers: 1} })
	})
	r.serves("fruit", "1")
	keys, of := []string{}, [2]int{}
	for _, key := range numbered("k", 2000) { // the first partition is complete long before the second one
		if p := shard.String.Partition([]byte(key), 2); of[p] < []int{5, 500}[p] {
			keys, of[p] = append(keys, key), of[p]+1
		}
	}
	f.put("fruit", "2", 2, keys...)
	r.Refresh()
	r.eventually("a partition is complete", func() bool { return len(r.onNode("fruit", "2").Partitions) == 1 })
	free.Store(1 << 19)
	r.eventually("it is an error", func() bool { return r.onNode("fruit", "2").State == status.Error })
	v := r.onNode("fruit", "2")
	if !strings.Contains(v.Error, "the load has been ended after it had written ") || len(v.Partitions) > 0 {
		t.Errorf("partitions %v: %s", v.Partitions, v.Error)
	}
	if blocks, err := filepath.Glob(filepath.Join(f.store, "data/fruit/2/*/*block*")); err != nil || len(blocks) > 0 {
		t.Errorf("left: %v, %v", blocks, err)
	}
	started := f.log.count("load started", "version=2 ")
	free.Store(1<<20 + 1<<14)
	r.Apply(*r.reloadable.Load())
	r.eventually("it is refused", func() bool { return strings.Contains(r.onNode("fruit", "2").Error, "the load has not begun") })
	if n := f.log.count("load started", "version=2 ") - started; n > 0 || r.get("/fruit/fig").body != "fig of 1" {
		t.Errorf("%d loads have been started for which there was no room, and /fruit/fig is %v", n, r.get("/fruit/fig"))
	}
	free.Store(1 << 30)
	r.Apply(*r.reloadable.Load()) // the pause may have grown long
	r.serves("fruit", "2")
}
