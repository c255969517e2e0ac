package store

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/internal/fsys/faultfs"
	"sequins/test/expect"
)

// What is served is known after a restart, whether or not there are blocks of it.
func TestServed(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	expect.NoError(t, err)
	if v, err := s.Served("db"); v != "" || err != nil {
		t.Fatalf("served %q, %v", v, err)
	}
	expect.NoError(t, s.SetServed("db", "2"))
	expect.NoError(t, s.SetServed("db", "3"))
	expect.NoError(t, s.Close())
	s, err = Open(dir)
	expect.NoError(t, err)
	if v, err := s.Served("db"); v != "3" || err != nil {
		t.Fatalf("served %q, %v", v, err)
	}
	if dbs, err := s.Databases(); len(dbs) != 0 || err != nil {
		t.Errorf("it counts as a db with versions: %v, %v", dbs, err)
	}
	expect.NoError(t, s.ForgetServed("db"))
	if _, err := fsys.OS.Stat(filepath.Join(dir, dataDir, "db")); err == nil {
		t.Error("the db's directory is left")
	}
	expect.NoError(t, s.ForgetServed("db"))
	expect.NoError(t, s.Close())
	if s.SetServed("db", "../x") == nil || s.SetServed("a/b", "1") == nil {
		t.Error("names that lead elsewhere are taken")
	}
}

func TestServedDamaged(t *testing.T) {
	for _, content := range []string{"", "1", "..\n", "1\n2\n", string(make([]byte, 5000))} {
		f, s, _ := filled(t)
		expect.NoError(t, s.SetServed("db", "1"))
		expect.NoError(t, f.Alter("/s/data/db/_SERVED", func([]byte) []byte { return []byte(content) }))
		if v, err := s.Served("db"); v != "" || !errors.Is(err, blocks.ErrCorrupt) {
			t.Errorf("%.10q: served %q, %v", content, v, err)
		}
		expect.NoError(t, s.SetServed("db", "2"))
		if v, err := s.Served("db"); v != "2" || err != nil {
			t.Errorf("after %.10q it cannot be set: %q, %v", content, v, err)
		}
	}
}

// The note of an earlier release is taken over, and a version can have its name.
func TestServedOfAnEarlierRelease(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	expect.NoError(t, err)
	expect.NoError(t, s.SetServed("db", "3"))
	expect.NoError(t, s.Close())
	db := filepath.Join(dir, dataDir, "db")
	expect.NoError(t, fsys.OS.Rename(filepath.Join(db, servedName), filepath.Join(db, oldServedName)))
	s, err = Open(dir)
	expect.NoError(t, err)
	if v, err := s.Served("db"); v != "3" || err != nil {
		t.Errorf("served %q, %v", v, err)
	}
	m := testManifest()
	_, err = s.Create("db", oldServedName, m)
	expect.NoError(t, err)
	expect.NoError(t, s.SetServed("db", oldServedName))
	expect.NoError(t, s.Close())
	s, err = Open(dir)
	expect.NoError(t, err)
	if versions, err := s.Versions("db"); len(versions) != 1 || versions[0] != oldServedName || err != nil {
		t.Errorf("versions %v, %v", versions, err)
	}
	expect.NoError(t, s.Close())
}

func TestAbsent(t *testing.T) {
	f, s, _ := filled(t)
	if since, err := s.AbsentSince("db"); !since.IsZero() || err != nil {
		t.Errorf("%v, %v", since, err)
	}
	expect.NoError(t, s.ClearAbsent("db"))
	expect.NoError(t, s.ClearAbsent("other"))
	expect.NoError(t, s.SetAbsent("db", testTime))
	if since, err := s.AbsentSince("db"); !since.Equal(testTime.Truncate(time.Second)) || err != nil {
		t.Errorf("%v, %v, want %v", since, err, testTime)
	}
	expect.NoError(t, f.Alter("/s/data/db/_ABSENT", func([]byte) []byte { return []byte("yesterday\n") }))
	if since, err := s.AbsentSince("db"); !since.IsZero() || !errors.Is(err, blocks.ErrCorrupt) {
		t.Errorf("%v, %v", since, err)
	}
	expect.NoError(t, s.ClearAbsent("db"))
	if since, err := s.AbsentSince("db"); !since.IsZero() || err != nil {
		t.Errorf("%v, %v", since, err)
	}
}

// A countedDisk counts the directories that are synced, which can be made to fail.
type countedDisk struct {
	fsys.FS
	syncs int
	fails bool
}

func (d *countedDisk) SyncDir(path string) error {
	d.syncs++
	if d.fails && strings.HasSuffix(path, "/db") {
		return syscall.EIO
	}
	return d.FS.SyncDir(path)
}

// A record that may not be durable is made again; one that is durable costs nothing more.
func TestServedIsMadeDurableOnce(t *testing.T) {
	disk := &countedDisk{FS: faultfs.New()}
	s, err := OpenFS(disk, "/store")
	expect.NoError(t, err)
	disk.fails = true
	expect.Error(t, "without a sync", s.SetServed("db", "1"), syscall.EIO)
	if served, err := s.Served("db"); served != "1" || err != nil {
		t.Fatalf("the record is in place: %q, %v", served, err)
	}
	expect.Error(t, "again without a sync", s.SetServed("db", "1"), syscall.EIO)
	disk.fails = false
	before := disk.syncs
	expect.NoError(t, s.SetServed("db", "1"))
	if disk.syncs == before {
		t.Error("it was not made durable")
	}
	before = disk.syncs
	expect.NoError(t, s.SetServed("db", "1"))
	if disk.syncs != before {
		t.Error("it was made durable again")
	}
}
