package store

import (
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/blocks"
	"sequins/test/expect"
	"sequins/test/faultfs"
)

var someListed = []Listed{
	{Known: blocks.Known{Size: 2345, ModTime: 1767225600000000, Records: 20, Footer: math.MaxUint32}, RawBytes: 5000, MaxValue: 300},
	{}, // of a block that is not here
	{Known: blocks.Known{Size: 1, ModTime: 999_999_999_999_999_999}},
}

func wantList(t *testing.T, what string, d *Dir, want []Listed) {
	t.Helper()
	if diff := cmp.Diff(want, d.List()); diff != "" {
		t.Errorf("listed %s (-want +got):\n%s", what, diff)
	}
}

func TestList(t *testing.T) {
	f, s, d := filled(t)
	none := make([]Listed, 3)
	wantList(t, "of a store of an older release", d, none)
	expect.NoError(t, d.SetList(someListed))
	wantList(t, "afterwards", d, someListed)
	again, err := memStore(t, f).Dir("db", input("v"))
	expect.NoError(t, err)
	wantList(t, "after a restart", again, someListed)
	expect.NoError(t, d.SetList(someListed[:1]))
	wantList(t, "of one", d, append(someListed[:1:1], none[1:]...))
	wantStore(t, s, "db/v A [0 1]")

	_, err = s.Create("db", planOf("v", "B"))
	expect.NoError(t, err)
	expect.NoError(t, d.SetList(someListed)) // of the old plan
	now, err := s.Dir("db", input("v"))
	expect.NoError(t, err)
	wantList(t, "of another plan", now, none)
}

// TestListDiskFull: the list that was there stays, and nothing is left beside it.
func TestListDiskFull(t *testing.T) {
	f, _, d := filled(t)
	expect.NoError(t, d.SetList(someListed))
	before, err := f.ReadDir(d.path)
	expect.NoError(t, err)
	f.SetFree(10)
	expect.Error(t, "SetList", d.SetList(someListed[:1]), syscall.ENOSPC)
	wantList(t, "afterwards", d, someListed)
	after, err := f.ReadDir(d.path)
	expect.NoError(t, err)
	if len(after) != len(before) {
		t.Errorf("left behind: %v", after)
	}
}

// TestListSwept: the list of a version is the store's own file.
func TestListSwept(t *testing.T) {
	f, _, _ := filled(t)
	write(t, f, "/s/data/db/v/0123456789abcdef/BLOCKS.json.7.tmp", "x")
	expect.NoError(t, f.MkdirAll("/s/data/db/w/0123456789abcdef"))
	write(t, f, "/s/data/db/w/0123456789abcdef/BLOCKS.json", "x") // where the manifest was lost
	wantStore(t, memStore(t, f), "db/v A [0 1]")
	for _, name := range []string{"/s/data/db/v/0123456789abcdef/BLOCKS.json.7.tmp", "/s/data/db/w/0123456789abcdef"} {
		if _, err := f.Stat(name); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}

// TestListFlippedBits: a list with a flipped bit, or cut short as by a power loss, lists nothing, or what it did before.
func TestListFlippedBits(t *testing.T) {
	entries := make([]listEntry, len(someListed))
	for p, l := range someListed {
		entries[p].partition, entries[p].Listed = p, l
	}
	entries[2].made = someMade()[1]
	data, err := encodeList(entries)
	expect.NoError(t, err)
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		if decodeList(data, len(entries)) != nil {
			t.Errorf("bit %d of %q flipped", bit, data)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	for n := range data {
		if n < len(data)-1 && decodeList(data[:n], len(entries)) != nil { // the newline may be missing
			t.Errorf("the first %d bytes", n)
		}
	}
	found := decodeList(data, len(entries))
	if len(found) != 2 || found[0].Listed != someListed[0] || found[1].made != someMade()[1] {
		t.Errorf("the whole: %+v", found)
	}
}

// TestListOutOfRange: a list with numbers that cannot be is none.
func TestListOutOfRange(t *testing.T) {
	const rest = `,"raw_bytes":0,"max_value":0,"made":"","of":0}]`
	for _, list := range []string{
		`[{"partition":2,"size":1,"mod_time":1,"records":1,"footer":1` + rest,
		`[{"partition":0,"size":1,"mod_time":1,"records":1,"footer":4294967296` + rest,
		`[{"partition":0,"size":-1,"mod_time":1,"records":1,"footer":1` + rest,
		`[{"partition":0}]`, `[]`, `{}`,
	} {
		if decodeList(sealed(listFile, list), 2) != nil {
			t.Errorf("%s is taken", list)
		}
	}
	good := `[{"partition":1,"size":1,"mod_time":1,"records":1,"footer":1` + rest
	if decodeList(sealed(listFile, good), 2) == nil {
		t.Errorf("%s is not taken", good)
	}
}

// allMade returns what is known of what blocks were made from.
func allMade(d *Dir) (all []Made) {
	for p := range d.manifest.Partitions {
		if m, known := d.Made(p); known {
			all = append(all, m)
		}
	}
	return all
}

// What blocks were made from stays when their figures change, is there at once, and is written by SetList.
func TestRecord(t *testing.T) {
	f, _, d := filled(t)
	expect.NoError(t, d.SetList(someListed))
	expect.NoError(t, d.Record(someMade()[:1]))
	expect.NoError(t, d.SetList(d.List()))
	again, err := memStore(t, f).Dir("db", input("v"))
	expect.NoError(t, err)
	if diff := cmp.Diff(someMade()[:1], allMade(again)); diff != "" {
		t.Error(diff)
	}
	wantList(t, "beside it", again, someListed)
	changed := slices.Clone(someListed)
	changed[0].RawBytes++
	expect.NoError(t, d.SetList(changed))
	expect.NoError(t, d.Record(someMade()[1:]))
	expect.NoError(t, d.SetList(d.List()))
	if diff := cmp.Diff(someMade(), allMade(d)); diff != "" {
		t.Error(diff)
	}
	wantList(t, "after all", d, changed)
	for _, wrong := range []Made{{Partition: 3, Hash: someMade()[0].Hash, Outline: someMade()[0].Outline}, {Partition: -1}, {Partition: 0, Hash: "x"}} {
		if d.Record([]Made{wrong}) == nil {
			t.Errorf("%+v is recorded", wrong)
		}
	}
}

// A list is not written for each block.
func TestRecordIsWrittenSeldom(t *testing.T) {
	f := faultfs.New()
	s := memStore(t, f)
	const n = 1000
	m := planOf("v", "A")
	m.Partitions = n
	d, err := s.Create("db", m)
	expect.NoError(t, err)
	before := f.Calls()
	var all []Made
	for p := range n {
		all = append(all, Made{Partition: p, Hash: strings.Repeat("0a", 32), Outline: strings.Repeat("b", 16)})
		expect.NoError(t, d.Record(all[p:]))
	}
	if calls := f.Calls() - before; calls > n {
		t.Errorf("%d calls for %d blocks", calls, n)
	}
	expect.NoError(t, d.SetList(d.List()))
	again, err := memStore(t, f).Dir("db", input("v"))
	expect.NoError(t, err)
	if diff := cmp.Diff(all, allMade(again)); diff != "" {
		t.Error(diff)
	}
}

// Whatever is in the file, what is taken from it is written as it is read.
func FuzzList(f *testing.F) {
	entries := make([]listEntry, 3)
	entries[0].Listed = someListed[0]
	entries[2].made = someMade()[1]
	good, err := encodeList(entries)
	expect.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format_version":2,"crc32c":"","blocks":[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries := make([]listEntry, 100)
		for _, e := range decodeList(data, len(entries)) {
			entries[e.partition] = e
		}
		again, err := encodeList(entries)
		expect.NoError(t, err)
		for _, e := range decodeList(again, len(entries)) {
			if before := entries[e.partition]; before.Listed != e.Listed || before.made != e.made {
				t.Errorf("%+v became %+v", before, e)
			}
		}
	})
}
