package store

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/faultfs"
)

// TestGone: a load that has not heard that its version was removed or planned anew cannot put a
// block of the old plan into the new directory.
func TestGone(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		f, s, d := filled(t)
		stage := d.Staging()
		expect.NoError(t, stageBlock(d, stage, 2))
		if replaced {
			_, err := s.Create("db", planOf("v", "B"))
			expect.NoError(t, err)
			expect.NoError(t, stageBlock(d, stage, 1)) // as if it had been there before
		} else {
			expect.NoError(t, s.Remove("db", input("v")))
			_, err := stage.CreateBlock(0)
			expect.Error(t, "CreateBlock", err, fs.ErrNotExist)
		}
		expect.Error(t, "Publish", d.Publish(stage, 1), fs.ErrNotExist)
		expect.Error(t, "Publish", d.Publish(stage, 2), fs.ErrNotExist)
		expect.Error(t, "SetAside", d.SetAside(0), fs.ErrNotExist)
		expect.NoError(t, d.Clear(stage)) // which is not its to clear any more
		if replaced {
			wantStore(t, s, "db/v B []")
		} else {
			wantStore(t, s)
		}
		if n := f.OpenFiles(); n != 0 {
			t.Errorf("%d files are open", n)
		}
	}
}

// TestClear: what a load has left is removed, and nothing else.
func TestClear(t *testing.T) {
	f, s, d := filled(t)
	dead, other := d.Staging(), d.Staging()
	expect.NoError(t, stageBlock(d, dead, 0))
	expect.NoError(t, stageBlock(d, other, 2))
	_, err := dead.CreateBlock(1)
	expect.NoError(t, err)
	write(t, f, dead.Temp()+"/run-1.tmp", "x")
	expect.NoError(t, d.Clear(dead))
	expect.NoError(t, d.Publish(other, 2))
	wantStore(t, s, "db/v A [0 1 2]")
	entries, err := f.ReadDir(d.path)
	expect.NoError(t, err)
	if len(entries) != 4 { // three blocks and the manifest
		t.Errorf("left: %v", entries)
	}
}

// TestMissing: the partitions without a block.
func TestMissing(t *testing.T) {
	_, _, d := filled(t)
	got, err := d.Missing([]int{0, 1, 2})
	expect.NoError(t, err)
	if !slices.Equal(got, []int{2}) {
		t.Errorf("missing are %v of a version with 0 and 1", got)
	}
}

// TestDeletedBehindOurBack: a directory that somebody deleted is made anew, with its manifest.
func TestDeletedBehindOurBack(t *testing.T) {
	f, s, d := filled(t)
	expect.NoError(t, f.RemoveAll("/s/data/db"))
	_, err := s.Dir("db", input("v"))
	expect.Error(t, "Dir", err, fs.ErrNotExist)
	_, err = d.Staging().CreateBlock(0)
	expect.Error(t, "CreateBlock", err, fs.ErrNotExist)
	d, err = s.Create("db", planOf("v", "A"))
	expect.NoError(t, err)
	expect.NoError(t, addBlock(d, 1))
	wantStore(t, memStore(t, f), "db/v A [1]")
}

// TestWithoutItsDisk: into the directory that is there when a disk is unmounted, which is of another disk, nothing is written, and what was on the
// disk is not taken for removed.
func TestWithoutItsDisk(t *testing.T) {
	f, s, _ := filled(t)
	expect.NoError(t, f.RemoveAll("/s/data"))
	_, err := s.Create("db", planOf("v", "A"))
	expect.Error(t, "Create", err, fs.ErrNotExist)
	expect.Error(t, "SetState", s.SetState("db", State{Pin: "x"}), fs.ErrNotExist)
	expect.Error(t, "Remove", s.Remove("db", input("v")), fs.ErrNotExist)
	expect.Error(t, "Forget", s.Forget("db"), fs.ErrNotExist)
	if left := tree(t, f, "/s"); len(left) != 0 {
		t.Errorf("there are %s", left)
	}
}

func TestWrongBlock(t *testing.T) {
	f, s, d := filled(t)
	d2, err := s.Create("db", planOf("v2", "A"))
	expect.NoError(t, err)
	stage := d2.Staging()
	expect.NoError(t, stageBlock(d2, stage, 1))
	for _, p := range []int{-1, 3, 1 << 40} {
		if err := d.Publish(stage, p); err == nil || !strings.Contains(err.Error(), "of 3") {
			t.Errorf("partition %d of 3 can be published: %v", p, err)
		}
	}
	expect.Error(t, "publishing a block of another version", d.Publish(stage, 1), fs.ErrNotExist)
	expect.Error(t, "publishing another partition", d2.Publish(stage, 2), fs.ErrNotExist)
	expect.Error(t, "publishing for another load", d2.Publish(d2.Staging(), 1), fs.ErrNotExist)
	expect.NoError(t, stage.RemoveBlock(1))
	wantStore(t, s, "db/v A [0 1]", "db/v2 A []")
	if n := f.OpenFiles(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

func TestComplete(t *testing.T) {
	f, s, _ := filled(t)
	m := planOf("big", "A")
	m.Partitions = 200_000
	d, err := s.Create("db", m)
	expect.NoError(t, err)
	for _, p := range []int{0, 99_999, 100_000, 199_999} {
		expect.NoError(t, addBlock(d, p))
	}
	for _, name := range []string{"1.block", "000001.block", "+0001.block", "-0001.block", "0x001.block", "200000.block",
		"99999999999999999999.block", ".block", "00003.Block", "00003.block.corrupt", "00003.block.9.tmp"} {
		write(t, f, "/s/data/db/big/0123456789abcdef/"+name, "x")
	}
	expect.NoError(t, f.MkdirAll("/s/data/db/big/0123456789abcdef/00007.block"))
	wantStore(t, s, "db/big A [0 99999 100000 199999]", "db/v A [0 1]")
}

func TestSetAside(t *testing.T) {
	f, s, d := filled(t)
	expect.Error(t, "SetAside of nothing", d.SetAside(2), fs.ErrNotExist)
	if err := d.SetAside(3); err == nil {
		t.Error("SetAside of a partition that is not there")
	}
	expect.NoError(t, d.SetAside(0))
	wantStore(t, s, "db/v A [1]")
	_, err := f.Stat(d.BlockPath(0) + ".corrupt")
	expect.NoError(t, err)

	expect.NoError(t, addBlock(d, 0))
	wantStore(t, s, "db/v A [0 1]")
	expect.NoError(t, d.SetAside(0))
	_, err = f.Stat(d.BlockPath(0) + ".corrupt")
	expect.NoError(t, err)
	wantStore(t, memStore(t, f.Crash(faultfs.Lose)), "db/v A [1]")
}
