package store

import (
	"math"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/blocks"
	"sequins/test/expect"
)

var someKnown = []blocks.Known{
	{Size: 2345, ModTime: 1767225600000000, Records: 20, Footer: math.MaxUint32},
	{}, // of a large block, or of one that is not here
	{Size: 1, ModTime: 999_999_999_999_999_999, Records: 0, Footer: 0},
}

func wantKnown(t *testing.T, what string, d *Dir, want []blocks.Known) {
	t.Helper()
	if diff := cmp.Diff(want, d.Known()); diff != "" {
		t.Errorf("known %s (-want +got):\n%s", what, diff)
	}
}

func TestKnown(t *testing.T) {
	f, s, d := filled(t)
	none := make([]blocks.Known, 3)
	wantKnown(t, "of a store of an older release", d, none)
	expect.NoError(t, d.SetKnown(someKnown))
	wantKnown(t, "afterwards", d, someKnown)
	again, err := memStore(t, f).Dir("db", "v")
	expect.NoError(t, err)
	wantKnown(t, "after a restart", again, someKnown)
	expect.NoError(t, d.SetKnown(someKnown[:1]))
	wantKnown(t, "of one", d, append(someKnown[:1:1], none[1:]...))
	wantStore(t, s, "db/v A [0 1]")

	_, err = s.Create("db", "v", plan("B"))
	expect.NoError(t, err)
	expect.NoError(t, d.SetKnown(someKnown)) // of the old plan
	now, err := s.Dir("db", "v")
	expect.NoError(t, err)
	wantKnown(t, "of another plan", now, none)
}

// TestKnownDiskFull: the list that was there stays, and nothing is left beside it.
func TestKnownDiskFull(t *testing.T) {
	f, _, d := filled(t)
	expect.NoError(t, d.SetKnown(someKnown))
	before, err := f.ReadDir(d.path)
	expect.NoError(t, err)
	f.SetFree(10)
	expect.Error(t, "SetKnown", d.SetKnown(someKnown[:1]), syscall.ENOSPC)
	wantKnown(t, "afterwards", d, someKnown)
	after, err := f.ReadDir(d.path)
	expect.NoError(t, err)
	if len(after) != len(before) {
		t.Errorf("left behind: %v", after)
	}
}

// TestKnownSwept: the list of a version is the store's own file.
func TestKnownSwept(t *testing.T) {
	f, _, _ := filled(t)
	write(t, f, "/s/data/db/v/BLOCKS.json.7.tmp", "x")
	expect.NoError(t, f.MkdirAll("/s/data/db/w"))
	write(t, f, "/s/data/db/w/BLOCKS.json", "x") // where the manifest was lost
	wantStore(t, memStore(t, f), "db/v A [0 1]")
	for _, name := range []string{"/s/data/db/v/BLOCKS.json.7.tmp", "/s/data/db/w"} {
		if _, err := f.Stat(name); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}

// TestKnownFlippedBits: a list with a flipped bit, or cut short as by a power loss, lists nothing, or what it did before.
func TestKnownFlippedBits(t *testing.T) {
	data := encodeKnown(someKnown)
	known := make([]blocks.Known, len(someKnown))
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		if parseKnown(data, known) {
			t.Errorf("bit %d of %q flipped", bit, data)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	for n := range data {
		if parseKnown(data[:n], known) {
			t.Errorf("the first %d bytes", n)
		}
	}
	if !parseKnown(data, known) || !cmp.Equal(known, someKnown) {
		t.Errorf("the whole: %v", known)
	}
}

// TestKnownOutOfRange: a list with numbers that cannot be is none.
func TestKnownOutOfRange(t *testing.T) {
	known := make([]blocks.Known, 2)
	if parseKnown(encodeKnown(someKnown), known) {
		t.Error("partition 2 of 2")
	}
	for _, list := range []string{
		`[{"partition":0,"size":1,"mod_time":1,"records":1,"footer":4294967296}]`,
		`[{"partition":0,"size":-1,"mod_time":1,"records":1,"footer":1}]`,
		`[{"partition":0,"size":1,"mod_time":1,"records":1,"footer":1},]`,
		`[{"partition":0}]`, `[]`, `{}`,
	} {
		data := `{"format_version":1,"crc32c":"` + manifestCRC([]byte(list)) + `","blocks":` + list + "}\n"
		if parseKnown([]byte(data), known) {
			t.Errorf("%s is %v", list, known)
		}
	}
}
