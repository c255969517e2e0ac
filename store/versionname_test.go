package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
)

// The directory of a revision is told from that of a version whose name looks like one, and ids are listed in their order.
func TestVersionNames(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	expect.NoError(t, err)
	ids := []string{"a", "a#00001", "a+", "a+00001", "a+00001#00002", "a+b", "a,b", "a-b", "a:b", "a@b", "dt=2026-01-31"}
	disk := []string{"a", "a+00001", "a%2B", "a%2B00001", "a%2B00001+00002", "a%2Bb", "a,b", "a-b", "a:b", "a@b", "dt=2026-01-31"}
	for i, id := range ids {
		d, err := s.Create("db=1", id, Manifest{})
		expect.NoError(t, err)
		if got := filepath.Base(d.path); got != disk[i] || d.Manifest().Version != id {
			t.Errorf("%s is %s in %s", id, d.Manifest().Version, got)
		}
		expect.NoError(t, s.SetServed("db=1", id))
		expect.NoError(t, s.Close())
		s, err = Open(dir)
		expect.NoError(t, err)
		if got, err := s.Served("db=1"); got != id || err != nil {
			t.Errorf("served %q, %v; want %q", got, err, id)
		}
		d, err = s.Dir("db=1", id)
		expect.NoError(t, err)
		if d.Manifest().Version != id {
			t.Errorf("%s is %s after a restart", id, d.Manifest().Version)
		}
	}
	if got, err := s.Versions("db=1"); !slices.Equal(got, ids) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, id := range ids {
		expect.NoError(t, s.Remove("db=1", id))
	}
	expect.NoError(t, s.Close())
}

// Directories of other names are not touched, and names that are too long on the disk are refused.
func TestNoVersionNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a#00001", "a+b", "a%2b", "a%2B+", "a%2C"} {
		expect.NoError(t, os.MkdirAll(filepath.Join(dir, dataDir, "db", name), 0o755))
	}
	s, err := Open(dir)
	expect.NoError(t, err)
	if got, err := s.Versions("db"); len(got) != 0 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, dataDir, "db")); len(entries) != 5 || err != nil {
		t.Errorf("%v are left, %v", entries, err)
	}
	for _, id := range []string{"", "a#", "a#b", "a#1#2", "#1", strings.Repeat("a+", 100)} {
		if _, err := s.Create("db", id, Manifest{}); err == nil {
			t.Errorf("%.20q is a version", id)
		}
	}
	expect.NoError(t, s.Close())
}
