//go:build integration

package single

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// mountTmpfs mounts a small file system for a store until the test ends.
func mountTmpfs(t *testing.T, path, size string) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(path, 0o755))
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mounting a small tmpfs (this test must run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestDiskFull loads into a small tmpfs: ERROR with the reason, nothing of the version left on
// disk, the old one up, and success after room is made.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	mountTmpfs(t, c.Store, "64m") // much more than the load writes between two looks at the disk, however busy the machine is
	ballast := filepath.Join(c.Store, "ballast")
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	expect.NoError(t, os.WriteFile(ballast, make([]byte, 62<<20), 0o644))
	writeVersion(t, source, "db", "2", 2, 5000, random(500))
	wantText(t, waitError(t, n, "db", "2"), "no space left on device")
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	n.WaitFor(t, "partial files are removed", func() bool {
		return !strings.Contains(strings.Join(storeFiles(t, c.Store), " "), ".tmp")
	})
	expect.NoError(t, os.Remove(ballast))
	n.WaitCurrent(t, "db", "2")
}

// TestRoomIsMade: a version that did not fit is loaded at SIGHUP when room has been made, however often it was tried
// before and whether a load was refused or has filled the disk.
func TestRoomIsMade(t *testing.T) {
	t.Parallel()
	for name, checked := range map[string]string{"refused": "true", "full": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, c := newNode(t)
			mountTmpfs(t, c.Store, "64m")
			c.Extra, c.Sections = "", "[load]\ncheck_disk = "+checked+"\n[log]\nlevel = \"debug\"\n"
			ballast := filepath.Join(c.Store, "ballast")
			writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
			n := process.Serve(t, c, "db", "1")
			expect.NoError(t, os.WriteFile(ballast, make([]byte, 62<<20), 0o644))
			writeVersion(t, source, "db", "2", 2, 5000, random(500))
			n.Signal(t, syscall.SIGHUP)
			failed := regexp.MustCompile(`a version that failed will be tried again" db=db version=2 in=(\S+)`)
			attempts := 0
			n.WaitFor(t, "it has failed so often that the next attempt is far away", func() bool {
				all := failed.FindAllStringSubmatch(n.Log(), -1)
				if len(all) == attempts {
					return false
				}
				attempts = len(all)
				if next, err := time.ParseDuration(all[attempts-1][1]); err != nil || next > 40*time.Second {
					return err == nil
				}
				n.Signal(t, syscall.SIGHUP)
				return false
			})
			expect.NoError(t, os.Remove(ballast))
			n.Signal(t, syscall.SIGHUP)
			begin := time.Now()
			n.WaitCurrent(t, "db", "2")
			t.Logf("it is served %s after there is room; %d attempts", time.Since(begin), attempts)
		})
	}
}

// TestMinFreeDisk: a small file that expands fills the disk up to min_free_disk and no further, once. Another database
// is loaded beside it, and the version is loaded when there is room.
func TestMinFreeDisk(t *testing.T) {
	t.Parallel()
	const size, reserve = 48 << 20, 16 << 20
	source, c := newNode(t)
	mountTmpfs(t, c.Store, fmt.Sprint(size))
	c.Sections = fmt.Sprintf("[load]\nmin_free_disk = \"%dMiB\"\n[storage]\ncompression = \"none\"\n[log]\nlevel = \"debug\"\n", reserve>>20)
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	free := func() int64 {
		var disk syscall.Statfs_t
		if err := syscall.Statfs(c.Store, &disk); err != nil {
			t.Error(err)
		}
		return int64(disk.Bavail) * disk.Bsize
	}
	least, measured := int64(size), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(measured)
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			least = min(least, free())
		}
	}()
	dir := filepath.Join(source, "db", "_2")
	expect.NoError(t, os.MkdirAll(dir, 0o755))
	small := filepath.Join(dir, "part-r-00000")
	writeCompressed(t, small, 75<<20)
	if info, err := os.Stat(small); err != nil || info.Size() > 1<<20 {
		t.Fatalf("the file: %v, %v", info, err)
	}
	expect.NoError(t, os.Rename(dir, filepath.Join(source, "db", "2")))
	wantText(t, waitError(t, n, "db", "2"), "the load has been ended after it had written", "16.0 MiB for load.min_free_disk", "no space left on device")
	writeVersion(t, source, "other", "1", 2, 100, numbered("1"))
	n.WaitCurrent(t, "other", "1")
	n.WaitFor(t, "it was tried again", func() bool { return strings.Count(n.Log(), "version failed again") > 1 })
	stop()
	<-measured
	t.Logf("%d MiB were free", least>>20)
	if least < reserve {
		t.Errorf("%d bytes were free, %d are to stay", least, reserve)
	}
	if got := strings.Count(n.Log(), "has been ended after"); got != 1 {
		t.Errorf("the disk was filled %d times", got)
	}
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	expect.NoError(t, syscall.Mount("tmpfs", c.Store, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", 8*size)))
	n.WaitCurrent(t, "db", "2")
}

// writeCompressed writes a compressed file of a version whose values have some bytes in all.
func writeCompressed(t *testing.T, path string, bytes int) {
	t.Helper()
	sequencefiles.WriteFile(t, path, sequencefiles.WriterOptions{Compression: sequencefiles.Block}, func(add func(key, value string)) {
		value := strings.Repeat("\x00", 64<<10)
		for i := range bytes / len(value) {
			add(fmt.Sprintf("key-%06d", i), value)
		}
	})

}

// random returns records with random values of a size.
func random(size int) func(int) (string, string) {
	rng := rand.New(rand.NewPCG(1, 1))
	return func(i int) (string, string) {
		v := make([]byte, size)
		for j := range v {
			v[j] = byte(rng.Uint32())
		}
		return fmt.Sprintf("key-%06d", i), string(v)
	}
}
