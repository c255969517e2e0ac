package store

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"sequins/internal/content"
	"sequins/test/expect"
)

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

// A load finds the directories of all other contents, also of another input of the version, those of the newest version first.
func TestFormer(t *testing.T) {
	s, first, second := twoVersions(t)
	other := planOf("1", "string")
	other.Input = strings.Repeat("f", 16)
	third, err := s.Create("db", other)
	expect.NoError(t, err)
	for d, want := range map[*Dir][]string{first: {second.path, third.path}, second: {third.path, first.path}, third: {second.path, first.path}} {
		if former, err := d.Staging().Former(); err != nil || !slices.Equal(former, want) {
			t.Errorf("%q, %v; want %q", former, err, want)
		}
	}
}

// A linked block is published like any other, and freed with the last version that has it.
func TestLinkBlock(t *testing.T) {
	s, first, second := twoVersions(t)
	expect.NoError(t, os.WriteFile(first.BlockPath(2), []byte("block"), 0o644))
	expect.NoError(t, os.WriteFile(first.BlockPath(1), []byte("another"), 0o644))
	to := second.Staging()
	name, err := to.LinkBlock(first.path, 2)
	expect.NoError(t, err)
	if data, err := os.ReadFile(name); err != nil || string(data) != "block" || name != to.FinishedPath(2) {
		t.Errorf("%s is %q, %v", name, data, err)
	}
	_, err = to.LinkBlock(first.path, 2)
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
	_, err = second.Staging().LinkBlock(first.path, 1)
	expect.Error(t, "a link to what is gone", err, fs.ErrNotExist)
}
