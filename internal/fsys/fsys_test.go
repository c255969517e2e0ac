package fsys_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/fsys"
	"sequins/test/expect"
	"sequins/test/faultfs"
)

// forEach runs a test on the real and on the in-memory file system, which must behave alike.
func forEach(t *testing.T, test func(t *testing.T, disk fsys.FS, dir string)) {
	t.Run("OS", func(t *testing.T) { test(t, fsys.OS, t.TempDir()) })
	t.Run("faultfs", func(t *testing.T) {
		f := faultfs.New()
		expect.NoError(t, f.MkdirAll("/test"))
		test(t, f, "/test")
		if n := f.OpenFiles(); n != 0 {
			t.Errorf("%d files were left open", n)
		}
	})
}

// write creates and closes a file without an fsync.
func write(t *testing.T, disk fsys.FS, name, content string) {
	t.Helper()
	f, err := disk.Create(name)
	expect.NoError(t, err)
	_, err = io.WriteString(f, content)
	expect.NoError(t, err)
	expect.NoError(t, f.Close())
}

func read(t *testing.T, disk fsys.FS, name string) string {
	t.Helper()
	data, err := fsys.ReadFile(disk, name, 1<<20)
	expect.NoError(t, err)
	return string(data)
}

func names(t *testing.T, disk fsys.FS, dir string) []string {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	expect.NoError(t, err)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestFile(t *testing.T) {
	forEach(t, func(t *testing.T, disk fsys.FS, dir string) {
		name := filepath.Join(dir, "a")
		f, err := disk.Create(name)
		expect.NoError(t, err)
		if f.Name() != name {
			t.Errorf("Name is %q, want %q", f.Name(), name)
		}
		for _, part := range []string{"hello ", "", "world"} {
			n, err := io.WriteString(f, part)
			expect.NoError(t, err)
			if n != len(part) {
				t.Errorf("wrote %d of %d bytes", n, len(part))
			}
		}
		expect.NoError(t, f.Sync())
		_, err = f.Read(make([]byte, 1))
		expect.Error(t, "Read behind what was written", err, io.EOF)
		buf := make([]byte, 5)
		_, err = f.ReadAt(buf, 6)
		expect.NoError(t, err)
		if string(buf) != "world" {
			t.Errorf("ReadAt read %q", buf)
		}
		n, err := f.ReadAt(buf, 8)
		expect.Error(t, "ReadAt over the end", err, io.EOF)
		if string(buf[:n]) != "rld" {
			t.Errorf("ReadAt over the end read %q", buf[:n])
		}
		_, err = f.ReadAt(buf, 100)
		expect.Error(t, "ReadAt behind the end", err, io.EOF)
		expect.NoError(t, f.Close())
		expect.Error(t, "Close again", f.Close(), fs.ErrClosed)
		_, err = f.Write(buf)
		expect.Error(t, "Write after Close", err, fs.ErrClosed)
		expect.Error(t, "Sync after Close", f.Sync(), fs.ErrClosed)
	})
}

func TestOpen(t *testing.T) {
	forEach(t, func(t *testing.T, disk fsys.FS, dir string) {
		name := filepath.Join(dir, "a")
		_, err := disk.Open(name)
		expect.Error(t, "Open of nothing", err, fs.ErrNotExist)
		write(t, disk, name, "content")
		_, err = disk.Create(name)
		expect.Error(t, "Create of what exists", err, fs.ErrExist)

		f, err := disk.Open(name)
		expect.NoError(t, err)
		_, err = f.Write([]byte("x"))
		expect.Error(t, "Write to a file opened for reading", err, syscall.EBADF)
		expect.NoError(t, disk.Remove(name))
		data, err := io.ReadAll(f)
		expect.NoError(t, err)
		if string(data) != "content" {
			t.Errorf("read %q from an open file that was removed", data)
		}
		expect.NoError(t, f.Close())

		_, err = disk.Create(filepath.Join(dir, "none", "a"))
		expect.Error(t, "Create in no directory", err, fs.ErrNotExist)
	})
}

func TestRename(t *testing.T) {
	forEach(t, func(t *testing.T, disk fsys.FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
		expect.NoError(t, disk.MkdirAll(at("d/e")))
		expect.NoError(t, disk.MkdirAll(at("other")))
		write(t, disk, at("a"), "new")
		write(t, disk, at("b"), "old")
		expect.NoError(t, disk.Rename(at("a"), at("b")))
		if got := read(t, disk, at("b")); got != "new" {
			t.Errorf("after the rename: %q", got)
		}
		expect.Error(t, "Rename of nothing", disk.Rename(at("a"), at("c")), fs.ErrNotExist)
		expect.Error(t, "Rename into no directory", disk.Rename(at("b"), at("none/c")), fs.ErrNotExist)
		expect.Error(t, "Rename onto a directory", disk.Rename(at("b"), at("d")), fs.ErrExist)
		expect.Error(t, "Rename of a directory onto a file", disk.Rename(at("d"), at("b")), syscall.ENOTDIR)
		expect.NoError(t, disk.Rename(at("b"), at("d/e/moved")))
		expect.NoError(t, disk.Rename(at("d"), at("other/d")))
		if got := read(t, disk, at("other/d/e/moved")); got != "new" {
			t.Errorf("after moving file and directory: %q", got)
		}
		if diff := cmp.Diff([]string{"other"}, names(t, disk, dir)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLink(t *testing.T) {
	forEach(t, func(t *testing.T, disk fsys.FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, name) }
		write(t, disk, at("a"), "content")
		expect.NoError(t, disk.Link(at("a"), at("b")))
		expect.NoError(t, disk.Remove(at("a")))
		if got := read(t, disk, at("b")); got != "content" {
			t.Errorf("the other name has %q", got)
		}
		expect.Error(t, "Link of nothing", disk.Link(at("a"), at("c")), fs.ErrNotExist)
		expect.Error(t, "Link onto a file", disk.Link(at("b"), at("b")), fs.ErrExist)
		expect.Error(t, "Link into no directory", disk.Link(at("b"), at("none/c")), fs.ErrNotExist)
		expect.NoError(t, disk.MkdirAll(at("d")))
		expect.Error(t, "Link of a directory", disk.Link(at("d"), at("c")), fs.ErrPermission)
	})
}

func TestDirectories(t *testing.T) {
	forEach(t, func(t *testing.T, disk fsys.FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
		expect.NoError(t, disk.MkdirAll(at("x/y/z")))
		expect.NoError(t, disk.MkdirAll(at("x/y/z")))
		write(t, disk, at("x/y/b"), "12345")
		write(t, disk, at("x/y/a"), "")
		if diff := cmp.Diff([]string{"a", "b", "z"}, names(t, disk, at("x/y"))); diff != "" {
			t.Error(diff)
		}
		info, err := disk.Stat(at("x/y/b"))
		expect.NoError(t, err)
		if info.Name() != "b" || info.Size() != 5 || info.IsDir() || !info.Mode().IsRegular() {
			t.Errorf("Stat says %s, %d bytes, %v", info.Name(), info.Size(), info.Mode())
		}
		info, err = disk.Stat(at("x/y"))
		expect.NoError(t, err)
		if info.Name() != "y" || !info.IsDir() || !info.Mode().IsDir() {
			t.Errorf("Stat says %s, %v", info.Name(), info.Mode())
		}
		expect.NoError(t, disk.SyncDir(at("x")))
		expect.Error(t, "SyncDir of nothing", disk.SyncDir(at("none")), fs.ErrNotExist)
		_, err = disk.ReadDir(at("none"))
		expect.Error(t, "ReadDir of nothing", err, fs.ErrNotExist)
		_, err = disk.Stat(at("none"))
		expect.Error(t, "Stat of nothing", err, fs.ErrNotExist)
		expect.Error(t, "MkdirAll over a file", disk.MkdirAll(at("x/y/b")), syscall.ENOTDIR)
		expect.Error(t, "MkdirAll below a file", disk.MkdirAll(at("x/y/b/c")), syscall.ENOTDIR)
		expect.Error(t, "Remove of a full directory", disk.Remove(at("x/y")), syscall.ENOTEMPTY)
		expect.Error(t, "Remove of nothing", disk.Remove(at("none")), fs.ErrNotExist)
		expect.NoError(t, disk.Remove(at("x/y/z")))
		expect.NoError(t, disk.RemoveAll(at("x")))
		expect.NoError(t, disk.RemoveAll(at("x")))
		if got := names(t, disk, dir); len(got) != 0 {
			t.Errorf("left over: %v", got)
		}
	})
}

func TestMkdirAllOverDanglingLink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	expect.NoError(t, os.Symlink("nowhere", link))
	if err := fsys.OS.MkdirAll(link); err == nil {
		t.Error("a symbolic link to nowhere counts as a directory")
	}
}

func TestReadFile(t *testing.T) {
	forEach(t, func(t *testing.T, disk fsys.FS, dir string) {
		name := filepath.Join(dir, "a")
		write(t, disk, name, "12345")
		data, err := fsys.ReadFile(disk, name, 5)
		expect.NoError(t, err)
		if string(data) != "12345" {
			t.Errorf("read %q", data)
		}
		_, err = fsys.ReadFile(disk, name, 4)
		expect.Error(t, "ReadFile of a file that is too long", err, fsys.ErrTooLong)
		_, err = fsys.ReadFile(disk, name+"x", 4)
		expect.Error(t, "ReadFile of nothing", err, fs.ErrNotExist)
	})
}

func TestPublish(t *testing.T) {
	forEach(t, func(t *testing.T, disk fsys.FS, dir string) {
		final := filepath.Join(dir, "final")
		for _, content := range []string{"first", "second"} {
			f, err := disk.Create(filepath.Join(dir, "a.tmp"))
			expect.NoError(t, err)
			_, err = io.WriteString(f, content)
			expect.NoError(t, err)
			expect.NoError(t, fsys.Publish(disk, f, final))
			expect.Error(t, "Close after Publish", f.Close(), fs.ErrClosed)
			if got := read(t, disk, final); got != content {
				t.Errorf("published %q, want %q", got, content)
			}
		}
		if diff := cmp.Diff([]string{"final"}, names(t, disk, dir)); diff != "" {
			t.Error(diff)
		}
	})
}

// republish replaces the content "old" of /d/final by "new!".
func republish(f *faultfs.FS) error {
	w, err := f.Create("/d/a.tmp")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, "new!"); err != nil {
		return errors.Join(err, w.Close(), f.Remove("/d/a.tmp"))
	}
	return fsys.Publish(f, w, "/d/final")
}

// withOld returns a file system in which /d/final has the content "old".
func withOld(t *testing.T) *faultfs.FS {
	t.Helper()
	f := faultfs.New()
	expect.NoError(t, f.MkdirAll("/d"))
	write(t, f, "/d/final.tmp", "old")
	w, err := f.Open("/d/final.tmp")
	expect.NoError(t, err)
	expect.NoError(t, fsys.Publish(f, w, "/d/final"))
	return f
}

// TestPublishFails makes each system call fail in turn.
func TestPublishFails(t *testing.T) {
	for n := 1; ; n++ {
		f := withOld(t)
		before := f.Calls()
		f.FailAt(n, syscall.ENOSPC)
		err := republish(f)
		if err == nil {
			if made := f.Calls() - before; made != n-1 {
				t.Fatalf("call %d of %d failed without an error", n, made)
			}
			return
		}
		expect.Error(t, "Publish", err, syscall.ENOSPC)
		if diff := cmp.Diff([]string{"final"}, names(t, f, "/d")); diff != "" {
			t.Errorf("call %d failed: %s", n, diff)
		}
		if got := read(t, f, "/d/final"); got != "old" && got != "new!" {
			t.Errorf("call %d failed and final is %q", n, got)
		}
		if open := f.OpenFiles(); open != 0 {
			t.Errorf("call %d failed and %d files are open", n, open)
		}
	}
}

// TestPublishReportsLeftover: if removing the temporary file fails, too, both errors are returned.
func TestPublishReportsLeftover(t *testing.T) {
	f := withOld(t)
	w, err := f.Create("/d/a.tmp")
	expect.NoError(t, err)
	f.PowerOffAfter(0)
	err = fsys.Publish(f, w, "/d/final")
	expect.Error(t, "Publish", err, faultfs.ErrPowerOff)
	for _, part := range []string{"fsync", "remove"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: does not mention %s", err, part)
		}
	}
}

// TestPublishPowerLoss cuts the power after each system call in turn.
func TestPublishPowerLoss(t *testing.T) {
	seen := map[string]bool{}
	for n := 0; ; n++ {
		f := withOld(t)
		f.PowerOffAfter(n)
		err := republish(f)
		for left := range f.Outcomes(1000) {
			got := read(t, left, "/d/final")
			seen[got] = true
			if got != "new!" && (err == nil || got != "old") {
				t.Errorf("power lost after %d calls (%v): final is %q", n, err, got)
			}
		}
		if err == nil {
			break
		}
	}
	if !seen["old"] || !seen["new!"] {
		t.Errorf("power losses left only %v", seen)
	}
}

// TestCarelessPublish: a rename without a preceding fsync is detected.
func TestCarelessPublish(t *testing.T) {
	f := withOld(t)
	write(t, f, "/d/a.tmp", "new!")
	expect.NoError(t, f.Rename("/d/a.tmp", "/d/final"))
	expect.NoError(t, f.SyncDir("/d"))
	got := map[string]bool{}
	for left := range f.Outcomes(1000) {
		got[read(t, left, "/d/final")] = true
	}
	want := map[string]bool{"": true, "ne": true, string(bytes.Repeat([]byte{0}, 4)): true, "new!": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
