package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/test/expect"
)

// A pipe in the place of a file of the store is damage, and nobody waits for it.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, dataDir, "db")
	expect.NoError(t, os.MkdirAll(filepath.Join(db, "1"), 0o750))
	for _, name := range []string{"1/" + manifestName, servedName, originName, absentName, pinName, gateName} {
		expect.NoError(t, syscall.Mkfifo(filepath.Join(db, name), 0o600))
	}
	s, err := Open(dir)
	expect.NoError(t, err)
	for what, read := range map[string]func() error{
		"manifest": func() error { _, err := s.Dir("db", "1"); return err },
		"served":   func() error { _, err := s.Served("db"); return err },
		"origin":   func() error { _, _, err := s.Origin("db"); return err },
		"absent":   func() error { _, err := s.AbsentSince("db"); return err },
		"pin":      func() error { _, err := s.Pin("db"); return err },
		"gate":     func() error { _, err := s.Gate("db"); return err },
	} {
		if err := read(); !errors.Is(err, blocks.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	expect.NoError(t, s.SetServed("db", "1"))
	if served, err := s.Served("db"); served != "1" || err != nil {
		t.Errorf("served %q, %v", served, err)
	}
	expect.NoError(t, s.Close())
}

func TestPipeForTheLock(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, syscall.Mkfifo(filepath.Join(dir, lockName), 0o600))
	if _, err := Open(dir); !errors.Is(err, fsys.ErrNotRegular) {
		t.Errorf("opened: %v", err)
	}
	if pid := Owner(dir); pid != 0 {
		t.Errorf("its owner is %d", pid)
	}
}
