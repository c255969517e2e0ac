package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/content"
	"sequins/test/expect"
)

func someMade() []Made {
	return []Made{
		{Partition: 0, Hash: strings.Repeat("0a", 32), Outline: strings.Repeat("b", 16), Content: "0123456789abcdef", Records: 20},
		{Partition: 2, Hash: strings.Repeat("0c", 32), Outline: strings.Repeat("d", 16)},
	}
}

// twoVersions returns the directories of versions 1 and 2 of a db of three partitions.
func twoVersions(t *testing.T) (s *Store, first, second *Dir) {
	t.Helper()
	s, err := Open(t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, s.Close()) })
	first, err = s.Create("db", planOf("1", "string"))
	expect.NoError(t, err)
	second, err = s.Create("db", planOf("2", "string"))
	expect.NoError(t, err)
	return s, first, second
}

// What was recorded of one content is found by loads of the others, also of another input of the version.
func TestFormer(t *testing.T) {
	s, first, second := twoVersions(t)
	expect.NoError(t, first.Record(someMade()))
	expect.NoError(t, first.SaveMade())
	other := planOf("1", "string")
	other.Input = strings.Repeat("f", 16)
	third, err := s.Create("db", other)
	expect.NoError(t, err)
	own, err := first.Staging().Former()
	expect.NoError(t, err)
	for _, d := range []*Dir{second, third} {
		former, err := d.Staging().Former()
		expect.NoError(t, err)
		if len(own) > 0 || len(former) != 2 || former[1].Path != first.BlockPath(2) || former[0].Made != someMade()[0] {
			t.Errorf("%+v, and of the content itself %+v", former, own)
		}
	}
}

// A linked block is published like any other, and freed with the last version that has it.
func TestLinkBlock(t *testing.T) {
	s, first, second := twoVersions(t)
	expect.NoError(t, os.WriteFile(first.BlockPath(2), []byte("block"), 0o644))
	expect.NoError(t, os.WriteFile(first.BlockPath(1), []byte("another"), 0o644))
	to := second.Staging()
	former := Former{someMade()[1], first.BlockPath(2)}
	name, err := to.LinkBlock(former)
	expect.NoError(t, err)
	if data, err := os.ReadFile(name); err != nil || string(data) != "block" || name != to.FinishedPath(2) {
		t.Errorf("%s is %q, %v", name, data, err)
	}
	_, err = to.LinkBlock(former)
	expect.Error(t, "a second link", err, fs.ErrExist)
	expect.NoError(t, second.Publish(to, 2))
	for _, test := range []struct {
		versions []string
		want     int64
	}{{[]string{"1"}, 7}, {[]string{"2"}, 0}, {[]string{"1", "2"}, 12}, {[]string{"none"}, 0}, {nil, 0}} {
		var inputs []content.Input
		for _, v := range test.versions {
			inputs = append(inputs, input(v))
		}
		if got := s.Freed("db", inputs); got != test.want {
			t.Errorf("%d bytes are freed with %v, want %d", got, test.versions, test.want)
		}
	}
	expect.NoError(t, s.Remove("db", input("1")))
	if got := s.Freed("db", []content.Input{input("2")}); got != 5 {
		t.Errorf("%d bytes are freed", got)
	}
	_, err = second.Staging().LinkBlock(Former{Made{Partition: 1}, first.BlockPath(1)})
	expect.Error(t, "a link to what is gone", err, fs.ErrNotExist)
	for _, path := range []string{"/etc/passwd", first.BlockPath(0), filepath.Join(first.path, manifestName)} {
		if _, err := to.LinkBlock(Former{Made{Partition: 1}, path}); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
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

// What blocks were made from is known at once, and after SaveMade also to another store.
func TestRecord(t *testing.T) {
	f, _, d := filled(t)
	expect.NoError(t, d.Record(someMade()[:1]))
	expect.NoError(t, d.SaveMade())
	expect.NoError(t, d.Record(someMade()[1:]))
	again, err := memStore(t, f).Dir("db", input("v"))
	expect.NoError(t, err)
	if diff := cmp.Diff(someMade()[:1], allMade(again)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(someMade(), allMade(d)); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []Made{{Partition: 3, Hash: someMade()[0].Hash, Outline: someMade()[0].Outline}, {Partition: -1}, {Partition: 0, Hash: "x"}} {
		if d.Record([]Made{wrong}) == nil {
			t.Errorf("%+v is recorded", wrong)
		}
	}
}

// TestMadeDiskFull: what was written stays, and nothing is left beside it.
func TestMadeDiskFull(t *testing.T) {
	f, _, d := filled(t)
	expect.NoError(t, d.Record(someMade()[:1]))
	expect.NoError(t, d.SaveMade())
	before, err := f.ReadDir(d.path)
	expect.NoError(t, err)
	f.SetFree(10)
	expect.NoError(t, d.Record(someMade()))
	expect.Error(t, "SaveMade", d.SaveMade(), syscall.ENOSPC)
	again, err := memStore(t, f).Dir("db", input("v"))
	expect.NoError(t, err)
	if diff := cmp.Diff(someMade()[:1], allMade(again)); diff != "" {
		t.Error(diff)
	}
	after, err := f.ReadDir(d.path)
	expect.NoError(t, err)
	if len(after) != len(before) {
		t.Errorf("left behind: %v", after)
	}
}

// TestMadeSwept: the file is the store's own.
func TestMadeSwept(t *testing.T) {
	f, _, _ := filled(t)
	write(t, f, "/s/data/db/v/0123456789abcdef/MADE.json.7.tmp", "x")
	expect.NoError(t, f.MkdirAll("/s/data/db/w/0123456789abcdef"))
	write(t, f, "/s/data/db/w/0123456789abcdef/MADE.json", "x") // where the manifest was lost
	wantStore(t, memStore(t, f), "db/v A [0 1]")
	for _, name := range []string{"/s/data/db/v/0123456789abcdef/MADE.json.7.tmp", "/s/data/db/w/0123456789abcdef"} {
		if _, err := f.Stat(name); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}

// TestMadeFlippedBits: of a file with a flipped bit, or cut short as by a power loss, nothing is known.
func TestMadeFlippedBits(t *testing.T) {
	f, _, d := filled(t)
	expect.NoError(t, d.Record(someMade()))
	expect.NoError(t, d.SaveMade())
	path := filepath.Join(d.path, madeName)
	data, err := madeFile.read(f, path)
	expect.NoError(t, err)
	replace := func(data []byte) {
		expect.NoError(t, f.Remove(path))
		write(t, f, path, string(data))
	}
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		replace(data)
		if all := readMade(f, d.path); len(all) > 0 {
			t.Errorf("bit %d of %q flipped: %v", bit, data, all)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	for n := range data {
		if replace(data[:n]); n < len(data)-1 && len(readMade(f, d.path)) > 0 { // the newline may be missing
			t.Errorf("the first %d bytes", n)
		}
	}
}

// Whatever is in the file, what is taken from it is valid.
func FuzzMade(f *testing.F) {
	good, err := json.Marshal(someMade())
	expect.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`[{"partition":-1}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		disk, _, d := filled(t)
		write(t, disk, filepath.Join(d.path, madeName), string(sealed(madeFile, string(body))))
		for _, m := range readMade(disk, d.path) {
			if !m.Valid() {
				t.Errorf("%+v", m)
			}
		}
	})
}
