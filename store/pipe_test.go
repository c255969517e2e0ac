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
	expect.NoError(t, os.MkdirAll(filepath.Join(db, "1", testHash), 0o750))
	expect.NoError(t, syscall.Mkfifo(filepath.Join(db, "1", testHash, manifestName), 0o600))
	expect.NoError(t, syscall.Mkfifo(filepath.Join(db, stateName), 0o600))
	s, err := Open(dir)
	expect.NoError(t, err)
	_, err = s.Dir("db", input("1"))
	expect.Error(t, "the manifest", err, blocks.ErrCorrupt)
	_, err = s.State("db")
	expect.Error(t, "the state", err, blocks.ErrCorrupt)
	expect.NoError(t, s.SetState("db", someState()))
	state, err := s.State("db")
	expect.NoError(t, err)
	wantState(t, "afterwards", state, someState())
	expect.NoError(t, s.Close())
}

func TestPipeForTheLock(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, syscall.Mkfifo(filepath.Join(dir, lockName), 0o600))
	if _, err := Open(dir); !errors.Is(err, fsys.ErrNotRegular) {
		t.Errorf("opened: %v", err)
	}
}
