package loadproc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/load"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// inflated replaces the source by one small file of a version with size bytes of values.
func (w *world) inflated(size int) {
	w.t.Helper()
	w.onlyFirst()
	value := string(make([]byte, 64<<10))
	options := sequencefiles.WriterOptions{Compression: sequencefiles.Block}
	sequencefiles.WriteFile(w.t, filepath.Join(w.root, "db/1/part-00000"), options, func(add func(key, value string)) {
		for i := range size / len(value) {
			add(fmt.Sprintf("%06d", i), value)
		}
	})
}

// used returns the size of the files of the store. That of a file that has just been removed counts nothing.
func (w *world) used() (bytes int64) {
	_ = filepath.WalkDir(w.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it has just been removed
		}
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// smallDisk makes the disk of the store as small as that. The node, on a busy machine, is late when it measures it for the second time. The result is the
// least that was free.
func (w *world) smallDisk(size int64) *atomic.Int64 {
	least, measured := new(atomic.Int64), new(atomic.Int64)
	least.Store(size)
	w.launcher.Free = func() (int64, bool) {
		if measured.Add(1) == 2 {
			time.Sleep(300 * time.Millisecond)
		}
		free := size - w.used()
		least.Store(min(least.Load(), free))
		return free, true
	}
	return least
}

// everything is a claim of all partitions, of a plan of one.
var everything = Room{Want: []int{0}, Held: []bool{false}}

// A load that writes more than was thought is ended before it takes what is to stay free of the disk, or what another load needs. Its files are
// removed, and another attempt does not begin before there is more room than this one had.
func TestLoadThatOutgrowsTheDisk(t *testing.T) {
	const size, reserve, claimed = 64 << 20, 16 << 20, 8 << 20
	w := newWorld(t)
	w.inflated(64 << 20)
	least := w.smallDisk(size)
	w.launcher.SetReserve(reserve)
	other := &Process{left: claimed}
	w.launcher.claims = map[*Process]bool{other: true}
	job := testJob
	job.Options.Compression = blocks.None
	job.Options.Partitioner = "hadoop"
	p := w.start(t.Context(), job)
	m, dir := w.plan(p)
	expect.NoError(t, p.Claim(m, everything))
	err := p.Load(dir, []int{0}, func(News) {})
	var room *RoomError
	if !errors.As(err, &room) || load.Outcome(err) != load.DiskFull || !load.Passing(err) {
		t.Fatalf("%v (%s)", err, load.Outcome(err))
	}
	if free := least.Load(); free < reserve+claimed {
		t.Errorf("%d MiB were free, %d are to stay", free>>20, (reserve+claimed)>>20)
	}
	if room.Written < 4<<20 || room.Needs < room.Written+room.Written/10 {
		t.Errorf("it has written %d bytes, and needs %d", room.Written, room.Needs)
	}
	for _, part := range []string{"version 1 of db", "the load has been ended after it had written ", "another attempt needs about ", "16.0 MiB for load.min_free_disk", "no space left on device"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: it does not say %s", err, part)
		}
	}
	if left := w.left(); len(left) > 1 { // the manifest
		t.Errorf("left: %v", left)
	}
	again := everything
	again.Least = float64(room.Needs)
	if err := w.start(t.Context(), job).Claim(m, again); !errors.As(err, &room) || room.Written != 0 {
		t.Errorf("another attempt begins: %v", err)
	}
	w.smallDisk(16 * size)
	p = w.start(t.Context(), job)
	_, dir = w.plan(p)
	expect.NoError(t, p.Claim(m, again))
	expect.NoError(t, p.Load(dir, []int{0}, func(News) {}))
}

// Several loads outgrow the disk at the same time, which cannot be measured once.
func TestLoadsThatOutgrowTheDisk(t *testing.T) {
	const size, reserve = 96 << 20, 32 << 20
	w := newWorld(t)
	w.inflated(64 << 20)
	var measured, least atomic.Int64
	least.Store(size)
	w.launcher.Free = func() (int64, bool) {
		free := size - w.used()
		least.Store(min(least.Load(), free))
		return free, measured.Add(1) != 10
	}
	w.launcher.SetReserve(reserve)
	var loads []func() error
	for _, db := range []string{"a", "b", "c", "d"} {
		expect.NoError(t, os.CopyFS(filepath.Join(w.root, db), os.DirFS(filepath.Join(w.root, "db"))))
		job := testJob
		job.DB, job.Options.Compression, job.Options.Partitioner = db, blocks.None, "hadoop"
		p := w.start(t.Context(), job)
		m, dir := w.plan(p)
		expect.NoError(t, p.Claim(m, everything))
		loads = append(loads, func() error {
			defer p.Close()
			return p.Load(dir, []int{0}, func(News) {})
		})
	}
	var all sync.WaitGroup
	for _, load := range loads {
		all.Go(func() {
			err := load()
			if room, is := errors.AsType[*RoomError](err); err != nil && (!is || room.Needs < room.Written) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if free := least.Load(); free < reserve {
		t.Errorf("%d MiB were free, %d are to stay", free>>20, reserve>>20)
	}
}

// Runs that are merged more than once are removed meanwhile, and need no room then.
func TestRunsThatAreRemoved(t *testing.T) {
	w := newWorld(t)
	w.onlyFirst()
	const records, size = 32 << 10, 1000
	sequencefiles.WriteFile(w.t, filepath.Join(w.root, "db/1/part-00000"), sequencefiles.WriterOptions{Compression: sequencefiles.Block}, func(add func(key, value string)) {
		for i := range records {
			add(fmt.Sprintf("%06d", i*7919%records), string(make([]byte, size)))
		}
	})
	w.smallDisk(records * size * 7 / 4) // the runs, and most of the block
	job := testJob
	job.Options.Memory, job.Options.Compression, job.Options.Workers = 1<<20, blocks.None, 1
	p := w.start(t.Context(), job)
	m, dir := w.plan(p)
	expect.NoError(t, p.Claim(m, everything))
	var room *RoomError
	if err := p.Load(dir, []int{0}, func(News) {}); !errors.As(err, &room) {
		t.Fatal(err)
	}
	if room.Needs < records*size*7/4 || room.Needs > records*size*9/4 {
		t.Errorf("it needs %d bytes, for runs and a block of %d each", room.Needs, records*size)
	}
}

// What an attempt needs is known, too, if the disk is full before that is noticed, but not if something else than the disk is: a quota.
func TestLacked(t *testing.T) {
	full := &load.Failure{Text: "writing: no space left on device", Outcome: load.DiskFull}
	for name, c := range map[string]struct {
		err   error
		free  int64
		own   float64
		needs int64
	}{
		"full":                       {full, 900, 1, 1100},
		"others load three quarters": {full, 900, 0.25, 4400},
		"a quota":                    {full, 1200, 1, 0},
		"damage":                     {errors.New("damaged"), 0, 1, 0},
		"cancelled":                  {context.Canceled, 0, 1, 0},
	} {
		l := &Launcher{Free: func() (int64, bool) { return c.free, true }}
		p := &Process{launcher: l, parent: t.Context(), kept: 1000, own: c.own, demand: demand{blocks: rand.Float64()}}
		err := p.lacked(c.err)
		var room *RoomError
		if errors.As(err, &room) != (c.needs > 0) || c.needs > 0 && room.Needs != c.needs || !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&Process{launcher: &Launcher{Free: unknown}, parent: t.Context(), own: 1}).lacked(syscall.ENOSPC); err != syscall.ENOSPC { //nolint:errorlint // as it was
		t.Errorf("the disk is not known: %v", err)
	}
}
