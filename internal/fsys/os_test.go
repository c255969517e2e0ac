package fsys_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sequins/internal/fsys"
	"sequins/test/expect"
)

// Only regular files are opened. A pipe is not waited for.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	expect.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ln, err := net.Listen("unix", socket)
	expect.NoError(t, err)
	defer ln.Close()
	for _, name := range []string{pipe, socket, dir, os.DevNull} {
		for _, flags := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREATE} {
			f, err := fsys.OpenRegular(name, flags)
			if pathError := (*fs.PathError)(nil); !errors.Is(err, fsys.ErrNotRegular) || !errors.As(err, &pathError) || pathError.Path != name {
				t.Errorf("%s, flags %#x: %v, %v", name, flags, f, err)
			}
		}
	}
	if _, err := fsys.ReadFile(fsys.OS, pipe, 10); !errors.Is(err, fsys.ErrNotRegular) {
		t.Errorf("reading a pipe: %v", err)
	}
	if _, err := fsys.OpenRegular(filepath.Join(dir, "nothing"), os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// What is created cannot be read by everybody, whatever the umask.
func TestPermissions(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "a")
	expect.NoError(t, fsys.OS.MkdirAll(filepath.Join(dir, "b")))
	write(t, fsys.OS, filepath.Join(dir, "file"), "x")
	for name, want := range map[string]fs.FileMode{"": 0o750, "b": 0o750, "file": 0o640} {
		info, err := os.Stat(filepath.Join(dir, name))
		expect.NoError(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
}
