package blocks

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"sequins/internal/fsys"
)

// TestGone: a loader that has not heard that its version was removed or planned anew cannot put a
// block of the old plan into the new directory.
func TestGone(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		f, s, d := filled(t)
		begun, err := d.CreateBlock(2)
		check(t, err)
		if replaced {
			_, err = s.Create("db", "v", plan("B"))
			check(t, err)
		} else {
			check(t, s.Remove("db", "v"))
		}
		_, err = d.CreateBlock(0)
		wantErr(t, "CreateBlock", err, fs.ErrNotExist)
		wantErr(t, "PublishBlock", d.PublishBlock(begun, 2), fs.ErrNotExist)
		wantErr(t, "SetAside", d.SetAside(0), fs.ErrNotExist)
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

// TestGoneWhilePublishing: the same, where the version goes between the check and the rename.
func TestGoneWhilePublishing(t *testing.T) {
	f, s, d := filled(t)
	begun, err := d.CreateBlock(2)
	check(t, err)
	d2, err := s.Create("db", "v", plan("B"))
	check(t, err)
	second, err := d2.CreateBlock(2)
	check(t, err)
	wantErr(t, "Publish", fsys.Publish(f, begun, d.BlockPath(2)), fs.ErrNotExist)
	wantStore(t, s, "db/v B []")
	_, err = io.WriteString(second, content(d2.Manifest(), 2))
	check(t, err)
	check(t, d2.PublishBlock(second, 2))
	wantStore(t, s, "db/v B [2]")
}

// TestDeletedBehindOurBack: a directory that somebody deleted is made anew, with its manifest.
func TestDeletedBehindOurBack(t *testing.T) {
	f, s, d := filled(t)
	check(t, f.RemoveAll("/s/data/db"))
	_, err := s.Dir("db", "v")
	wantErr(t, "Dir", err, fs.ErrNotExist)
	_, err = d.CreateBlock(0)
	wantErr(t, "CreateBlock", err, fs.ErrNotExist)
	d, err = s.Create("db", "v", plan("A"))
	check(t, err)
	check(t, addBlock(d, 1))
	wantStore(t, memStore(t, f), "db/v A [1]")
}

func TestWrongBlock(t *testing.T) {
	f, s, d := filled(t)
	d2, err := s.Create("db", "v2", plan("A"))
	check(t, err)
	for _, p := range []int{-1, 3, 1 << 40} {
		if _, err := d.CreateBlock(p); err == nil {
			t.Errorf("partition %d of 3 can be created", p)
		}
	}
	foreign, err := d2.CreateBlock(1)
	check(t, err)
	if err := d.PublishBlock(foreign, 1); err == nil || !strings.Contains(err.Error(), "not a block") {
		t.Errorf("a block of another version is published: %v", err)
	}
	foreign, err = f.Open(d.BlockPath(0))
	check(t, err)
	if err := d.DiscardBlock(foreign); err == nil {
		t.Error("a published block is discarded")
	}
	other, err := d.CreateBlock(1)
	check(t, err)
	if err := d.PublishBlock(other, 2); err == nil || !strings.Contains(err.Error(), "partition 2") {
		t.Errorf("a block of another partition is published: %v", err)
	}
	discarded, err := d.CreateBlock(1)
	check(t, err)
	check(t, d.DiscardBlock(discarded))
	wantStore(t, s, "db/v A [0 1]", "db/v2 A []")
	if n := f.OpenFiles(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

func TestComplete(t *testing.T) {
	f, s, _ := filled(t)
	m := plan("A")
	m.Partitions = 200_000
	d, err := s.Create("db", "big", m)
	check(t, err)
	for _, p := range []int{0, 99_999, 100_000, 199_999} {
		check(t, addBlock(d, p))
	}
	for _, name := range []string{"1.block", "000001.block", "+0001.block", "-0001.block", "0x001.block", "200000.block",
		"99999999999999999999.block", ".block", "00003.Block", "00003.block.corrupt-1", "00003.block.9.tmp"} {
		write(t, f, "/s/data/db/big/"+name, "x")
	}
	check(t, f.MkdirAll("/s/data/db/big/00007.block"))
	wantStore(t, s, "db/big A [0 99999 100000 199999]", "db/v A [0 1]")
}

func TestSetAside(t *testing.T) {
	f, s, d := filled(t)
	wantErr(t, "SetAside of nothing", d.SetAside(2), fs.ErrNotExist)
	if err := d.SetAside(3); err == nil {
		t.Error("SetAside of a partition that is not there")
	}
	aside := func(at int64) string { return fmt.Sprintf("%s.corrupt-%d", d.BlockPath(0), at) }
	check(t, d.SetAside(0))
	wantStore(t, s, "db/v A [1]")
	_, err := f.Stat(aside(testTime.Unix()))
	check(t, err)

	check(t, addBlock(d, 0))
	wantStore(t, s, "db/v A [0 1]")
	s.now = func() time.Time { return testTime.Add(time.Hour) }
	check(t, d.SetAside(0))
	_, err = f.Stat(aside(testTime.Unix()))
	wantErr(t, "the first one set aside", err, fs.ErrNotExist)
	_, err = f.Stat(aside(testTime.Add(time.Hour).Unix()))
	check(t, err)
	wantStore(t, memStore(t, f.Crash(fsys.Lose)), "db/v A [1]")
}
