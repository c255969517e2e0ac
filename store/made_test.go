package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	expect.NoError(t, first.SetList(first.List()))
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
