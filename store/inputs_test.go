package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

func someInputs() []Input {
	return []Input{
		{Partition: 0, Hash: strings.Repeat("0a", 32), Outline: strings.Repeat("b", 16), Content: "0123456789abcdef", Records: 7},
		{Partition: 2, Hash: strings.Repeat("0c", 32), Outline: strings.Repeat("d", 16)},
	}
}

// twoVersions returns the directories of versions 1 and 2 of a db of three partitions.
func twoVersions(t *testing.T) (s *Store, first, second *Dir) {
	t.Helper()
	s, err := Open(t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, s.Close()) })
	plan := Manifest{Format: "f", Partitions: 3, Partitioner: "string"}
	first, err = s.Create("db", "1", plan)
	expect.NoError(t, err)
	second, err = s.Create("db", "2", plan)
	expect.NoError(t, err)
	return s, first, second
}

// What was recorded of one version is found by loads of the others.
func TestInputs(t *testing.T) {
	_, first, second := twoVersions(t)
	expect.NoError(t, first.Staging().SetInputs(someInputs()))
	if diff := cmp.Diff(someInputs(), first.Staging().Inputs()); diff != "" {
		t.Error(diff)
	}
	own, err := first.Staging().Former()
	expect.NoError(t, err)
	former, err := second.Staging().Former()
	expect.NoError(t, err)
	if len(own) > 0 || len(former) != 2 || former[1].Path != first.BlockPath(2) || former[0].Input != someInputs()[0] {
		t.Errorf("%+v, and of the version itself %+v", former, own)
	}
	huge := make([]Input, maxPartitions+1)
	expect.Error(t, "too many", second.Staging().SetInputs(huge), ErrTooLarge)
}

// A linked block is published like any other, and freed with the last version that has it.
func TestLinkBlock(t *testing.T) {
	s, first, second := twoVersions(t)
	expect.NoError(t, os.WriteFile(first.BlockPath(2), []byte("block"), 0o644))
	expect.NoError(t, os.WriteFile(first.BlockPath(1), []byte("another"), 0o644))
	to := second.Staging()
	former := Former{someInputs()[1], first.BlockPath(2)}
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
		if got := s.Freed("db", test.versions); got != test.want {
			t.Errorf("%d bytes are freed with %v, want %d", got, test.versions, test.want)
		}
	}
	expect.NoError(t, s.Remove("db", "1"))
	if got := s.Freed("db", []string{"2"}); got != 5 {
		t.Errorf("%d bytes are freed", got)
	}
	_, err = second.Staging().LinkBlock(Former{Input{Partition: 1}, first.BlockPath(1)})
	expect.Error(t, "a link to what is gone", err, fs.ErrNotExist)
	for _, path := range []string{"/etc/passwd", first.BlockPath(0), filepath.Join(first.path, manifestName)} {
		if _, err := to.LinkBlock(Former{Input{Partition: 1}, path}); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Whatever is in the file, what is taken from it is valid, and is written as it is read.
func FuzzInputs(f *testing.F) {
	good, err := encodeInputs(someInputs())
	expect.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format_version":1,"crc32c":"","inputs":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all := parseInputs(data)
		for _, in := range all {
			if !in.Valid() {
				t.Errorf("%+v", in)
			}
		}
		if len(all) == 0 {
			return
		}
		again, err := encodeInputs(all)
		expect.NoError(t, err)
		if diff := cmp.Diff(all, parseInputs(again)); diff != "" {
			t.Error(diff)
		}
	})
}
