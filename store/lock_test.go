package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sequins/test/expect"
)

// lockHelper is the environment variable that makes the test binary a process that opens the store
// it names, says what came of it, and waits until its input ends.
const lockHelper = "SEQUINS_TEST_LOCK_HELPER"

func init() {
	if dir := os.Getenv(lockHelper); dir != "" {
		s, err := Open(dir)
		fmt.Println("opened:", err)
		io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(s) // the lock goes with it
		os.Exit(0)
	}
}

// startOwner starts a process that owns the store in dir.
func startOwner(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockHelper+"="+dir)
	_, err := cmd.StdinPipe()
	expect.NoError(t, err)
	out, err := cmd.StdoutPipe()
	expect.NoError(t, err)
	expect.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "opened: <nil>\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd
}

func TestLockOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	owner := startOwner(t, dir)
	_, err := Open(dir)
	if !errors.Is(err, ErrLocked) || !strings.HasSuffix(err.Error(), fmt.Sprintf("by process %d", owner.Process.Pid)) {
		t.Fatalf("the store of process %d: %v", owner.Process.Pid, err)
	}
	if want := fmt.Sprintf("in use by process %d", owner.Process.Pid); !strings.Contains(err.Error(), want) {
		t.Errorf("%v: does not say %s", err, want)
	}
	expect.NoError(t, owner.Process.Kill())
	owner.Wait()
	s, err := Open(dir)
	expect.NoError(t, err)
	expect.NoError(t, s.Close())
}

func TestLockInOneProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	expect.NoError(t, err)
	path := filepath.Join(dir, lockName)
	content, err := os.ReadFile(path)
	expect.NoError(t, err)
	if want := fmt.Sprintln(os.Getpid()); string(content) != want {
		t.Errorf("the lock file has %q, want %q", content, want)
	}
	_, err = Open(dir)
	expect.Error(t, "Open again", err, ErrLocked)
	expect.NoError(t, s.Close())
	s, err = Open(dir)
	expect.NoError(t, err)
	expect.NoError(t, s.Close())
}

// TestLockWithoutPID: where the file does not name a process, the error does not invent one.
func TestLockWithoutPID(t *testing.T) {
	for _, content := range []string{"", "x", "-5", strings.Repeat("9", 100), "\x00\x00"} {
		dir := t.TempDir()
		held, err := lock(dir)
		expect.NoError(t, err)
		expect.NoError(t, os.WriteFile(filepath.Join(dir, lockName), []byte(content), 0o644))
		_, err = lock(dir)
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "another process") {
			t.Errorf("with %q in the file: %v", content, err)
		}
		expect.NoError(t, held.Close())
	}
}

// TestLockAfterOldContent: what an earlier owner, or the first sequins, wrote is written over.
func TestLockAfterOldContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, lockName)
	expect.NoError(t, os.WriteFile(path, []byte("1234567890123456789012345\n"), 0o644))
	held, err := lock(dir)
	expect.NoError(t, err)
	defer held.Close()
	if content, err := os.ReadFile(path); err != nil || string(content) != fmt.Sprintln(os.Getpid()) {
		t.Errorf("the lock file has %q, %v", content, err)
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	expect.NoError(t, os.WriteFile(file, nil, 0o644))
	if _, err := Open(file); err == nil {
		t.Error("a file is opened as a store")
	}
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, dataDir), nil, 0o644))
	if _, err := Open(dir); err == nil {
		t.Error("a store is opened with a file for data")
	}
	held, err := lock(dir) // which the failure has let go
	expect.NoError(t, err)
	expect.NoError(t, held.Close())
}
