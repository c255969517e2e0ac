package loadproc

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"sequins/load"
	"sequins/store"
	"sequins/test/expect"
)

// planOf returns a plan of 4 partitions whose files have 4,000 bytes.
func planOf(aligned bool) store.Manifest {
	return store.Manifest{Partitions: 4, Aligned: aligned, Files: []store.ManifestFile{{Size: 1000}, {Size: 3000}}}
}

func TestDemand(t *testing.T) {
	want, none := []int{0, 1, 3}, make([]bool, 4)
	for name, c := range map[string]struct {
		room         Room
		aligned      bool
		memory       int64
		blocks, runs float64
	}{
		"nothing served":        {Room{Want: want, Held: none}, true, 0, 3000, 0},
		"smaller blocks":        {Room{Want: want, Held: none, Blocks: 50, Source: 100}, true, 0, 1500, 0},
		"one is here":           {Room{Want: want, Held: []bool{false, true, true, false}, Blocks: 200, Source: 100}, true, 0, 4000, 0},
		"all are here":          {Room{Want: want, Held: []bool{true, true, true, true}}, false, 0, 0, 0},
		"sorted in memory":      {Room{Want: want, Held: none}, false, 3000, 3000, 0},
		"sorted on disk":        {Room{Want: want, Held: none, Blocks: 50, Source: 100}, false, 2999, 1500, 3000},
		"more is known":         {Room{Want: want, Held: none, Least: 3000}, false, 2999, 6000, 3000},
		"less is known":         {Room{Want: want, Held: none, Least: 10}, true, 0, 3000, 0},
		"an empty one is there": {Room{Want: want, Held: none, Blocks: 10, Source: 0}, true, 0, 3000, 0},
	} {
		if got := c.room.demand(planOf(c.aligned), c.memory); got != (demand{c.blocks, c.runs}) {
			t.Errorf("%s: %v, want %v and %v", name, got, c.blocks, c.runs)
		}
	}
	if got := (Room{}).demand(store.Manifest{}, 0); got != (demand{}) {
		t.Errorf("an empty version needs %v", got)
	}
}

func TestLeft(t *testing.T) {
	half := load.Snapshot{Bytes: 10, BytesDone: 5, Partitions: 4, PartitionsDone: 1}
	for _, c := range []struct {
		demand demand
		at     load.Snapshot
		want   float64
	}{
		{demand{blocks: 100}, load.Snapshot{}, 100},
		{demand{blocks: 100}, half, 50},
		{demand{blocks: 100, runs: 200}, load.Snapshot{}, 300},
		{demand{blocks: 100, runs: 200}, half, 175},
		{demand{blocks: 100}, load.Snapshot{Bytes: 10, BytesDone: 1 << 60}, 0},
		{demand{blocks: 100}, load.Snapshot{Bytes: -1, BytesDone: 5}, 100},
	} {
		if got := c.demand.left(c.at); got != c.want {
			t.Errorf("%v at %+v: %v, want %v", c.demand, c.at, got, c.want)
		}
	}
}

// A load begins if the disk has room for it, beside the reserve and what other loads will still write.
func TestClaim(t *testing.T) {
	free := int64(10_000)
	l := &Launcher{Free: func() (int64, bool) { return free, true }, running: map[*Process]bool{}}
	room := Room{Want: []int{0, 1, 2, 3}, Held: make([]bool, 4)}
	process := func() *Process {
		p := &Process{launcher: l, memory: 1 << 30, own: 1}
		l.running[p] = true
		return p
	}
	first, second := process(), process()
	expect.NoError(t, first.Claim(planOf(true), room))
	l.SetReserve(3_000)
	err := second.Claim(planOf(true), room)
	var e *RoomError
	if !errors.As(err, &e) || *e != (RoomError{Needs: 4000, Free: 10_000, Claimed: 4000, Reserve: 3000}) {
		t.Fatalf("3,000 are left: %v", err)
	}
	if !errors.Is(err, syscall.ENOSPC) || load.Outcome(err) != load.DiskFull || !load.Passing(err) {
		t.Errorf("its class is %s", load.Outcome(err))
	}
	for _, part := range []string{"needs about 3.9 KiB", "9.8 KiB are free", "3.9 KiB are for loads that run", "2.9 KiB for load.min_free_disk", "0 B can be freed", "no space left on device"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: it does not say %s", err, part)
		}
	}
	first.advance(load.Snapshot{Bytes: 4, BytesDone: 1})
	if err := second.Claim(planOf(true), room); err != nil {
		t.Errorf("4,000 are left: %v", err)
	}
	first.advance(load.Snapshot{Bytes: 4, BytesDone: 0}) // planned anew
	if first.left != 3000 {
		t.Errorf("%v are left of the first", first.left)
	}
	free = 0
	third := process()
	if err := third.Claim(planOf(true), Room{Want: []int{0}, Held: []bool{true}}); err != nil {
		t.Errorf("nothing is missing: %v", err)
	}
	l.SetReserve(-1)
	if err := third.Claim(planOf(true), room); err != nil {
		t.Errorf("the disk is not to be checked: %v", err)
	}
	l.SetReserve(0)
	l.Free = unknown
	if err := third.Claim(planOf(true), room); err != nil {
		t.Errorf("the disk is not known: %v", err)
	}
}

// A claim is also for what is copied from other nodes, and stays until that is here.
func TestClaimOfCopies(t *testing.T) {
	l := &Launcher{Free: unknown}
	p := &Process{launcher: l, own: 1}
	expect.NoError(t, p.Claim(planOf(true), Room{Want: []int{0, 1, 2, 3}, Held: make([]bool, 4)}))
	claimed := func(when string, want int64) {
		t.Helper()
		if got := l.claimed(nil); got != want {
			t.Errorf("%s: %d bytes are claimed, want %d", when, got, want)
		}
	}
	claimed("at first", 4000)
	p.leaveToOthers(1)
	claimed("before the load", 4000)
	p.advance(load.Snapshot{Bytes: 4, BytesDone: 2})
	claimed("half of one partition is loaded", 3500)
	p.Copied()
	claimed("one is copied", 2500)
	p.advance(load.Snapshot{Bytes: 4, BytesDone: 4})
	claimed("one is loaded", 2000)
	for range 3 { // one that the process was to load, too
		p.Copied()
	}
	claimed("all is here", 0)
}

func TestFreeingHelps(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("other"), false},
		{syscall.ENOSPC, true},
		{&RoomError{Needs: 10, Free: 5, Freed: 5}, true},
		{&RoomError{Needs: 10, Free: 5, Freed: 4}, false},
		{&RoomError{Needs: 10, Free: 8, Claimed: 1, Reserve: 1, Freed: 3}, false},
		{&RoomError{Needs: 10, Free: 1, Written: 5, Reserve: -1, Freed: 4}, true},
	} {
		if got := FreeingHelps(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
