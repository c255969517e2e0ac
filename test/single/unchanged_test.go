//go:build integration

package single

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// writeCut writes a version of files that are cut by string. Files of partitions for which from is not "" are copies of those of that version.
func writeCut(t *testing.T, source, version string, files, keys int, from func(p int) string) {
	t.Helper()
	tmp := filepath.Join(source, "db", "_"+version)
	parts := make([][]int, files)
	for i := range keys {
		key, _ := big("")(i)
		p := shard.String.Partition([]byte(key), files)
		parts[p] = append(parts[p], i)
	}
	for p, part := range parts {
		name := fmt.Sprintf("part-r-%05d", p)
		if old := from(p); old != "" {
			copyFile(t, filepath.Join(source, "db", old, name), filepath.Join(tmp, name), -1)
			continue
		}
		sequencefiles.WriteFile(t, filepath.Join(tmp, name), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
			for _, i := range part {
				add(big(version)(i))
			}
		})
	}
	expect.NoError(t, errors.Join(os.WriteFile(filepath.Join(tmp, "_SUCCESS"), nil, 0o644), os.Rename(tmp, filepath.Join(source, "db", version))))
}

// inodes returns the files of a version's blocks, by number, with their sizes.
func inodes(t *testing.T, c process.Config, version string) map[uint64]int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Store, "data", "db", version, "*", "*.block"))
	expect.NoError(t, err)
	found := map[uint64]int64{}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			found[info.Sys().(*syscall.Stat_t).Ino] = info.Size()
		}
	}
	return found
}

// fresh returns the size of the blocks of which before does not have the file, and of all.
func fresh(before, now map[uint64]int64) (written, all int64) {
	for number, size := range now {
		all += size
		if _, found := before[number]; !found {
			written += size
		}
	}
	return written, all
}

// expectCut asks for every key of a version. from returns the version that its partitions have their values from.
func expectCut(t *testing.T, n *process.Node, version string, files, keys int, from func(p int) string) {
	t.Helper()
	c := n.Client()
	defer c.Close()
	for i := range keys {
		key, _ := big("")(i)
		_, want := big(from(shard.String.Partition([]byte(key), files)))(i)
		r, err := c.Get("/db/" + key)
		if err != nil || r.Code != 200 || string(r.Body) != want || r.Version() != version {
			t.Fatalf("GET %s: %v, %d of version %s, %.40q; want %.40q of %s", key, err, r.Code, r.Version(), r.Body, want, version)
		}
	}
}

// but returns a function that returns the version changed for one partition and old for all others.
func but(old string, p int, changed string) func(p int) string {
	return func(q int) string {
		if q == p {
			return changed
		}
		return old
	}
}

// TestUnchangedPartitions: a version of which 1 % has changed writes 1 % of the bytes, and says so. Its blocks outlive the version
// that they are from, a restart, and damage.
func TestUnchangedPartitions(t *testing.T) {
	t.Parallel()
	const files, keys = 100, 10_000
	source, c := newNode(t)
	c.Sections = "[storage]\ncompression = \"none\"\n"
	writeCut(t, source, "1", files, keys, func(int) string { return "" })
	n := process.Serve(t, c, "db", "1")
	first := inodes(t, c, "1")
	writeCut(t, source, "2", files, keys, but("1", 42, ""))
	n.WaitCurrent(t, "db", "2")
	n.WaitLog(t, "unchanged=99/100")
	written, all := fresh(first, inodes(t, c, "2"))
	t.Logf("%d of %d bytes of blocks written: %.2f %%", written, all, 100*float64(written)/float64(all))
	if written == 0 || written*60 > all {
		t.Errorf("%d of %d bytes are written", written, all)
	}
	n.WaitFor(t, "the former version is removed", func() bool { return len(inodes(t, c, "1")) == 0 })
	expectCut(t, n, "2", files, keys, but("1", 42, "2"))
	wantText(t, n.Metrics(t), `sequins_load_unchanged_partitions_total{db="db"} 99`)
	n.WaitFor(t, "the status has it", func() bool {
		return strings.Contains(string(n.Get(t, "/healthz").Body), `"unchanged_partitions":99`)
	})

	n.Stop(t)
	n = process.Serve(t, c, "db", "2")
	expectCut(t, n, "2", files, keys, but("1", 42, "2"))

	writeCut(t, source, "3", files, keys, but("2", -1, ""))
	n.WaitCurrent(t, "db", "3")
	n.WaitLog(t, "unchanged=100/100")
	expectCut(t, n, "3", files, keys, but("1", 42, "2"))
}

// TestUnchangedAfterKill kills a node while it loads the one partition that has changed. The next one goes on.
func TestUnchangedAfterKill(t *testing.T) {
	t.Parallel()
	const files, keys = 20, 4000
	source, c := newNode(t)
	writeCut(t, source, "1", files, keys, func(int) string { return "" })
	n := process.Serve(t, c, "db", "1")
	first := inodes(t, c, "1")
	n.Stop(t)
	slow := c
	slow.Extra += "\nthrottle_loads = \"50ms\""
	n = process.Serve(t, slow, "db", "1")
	writeCut(t, source, "2", files, keys, but("1", 7, ""))
	n.WaitFor(t, "all others are linked", func() bool { return len(inodes(t, c, "2")) == files-1 })
	n.Kill()
	n.WaitExit(t)
	n = process.Serve(t, c, "db", "2")
	now := inodes(t, c, "2")
	linked := 0
	for number := range now {
		if _, found := first[number]; found {
			linked++
		}
	}
	if linked != files-1 || len(now) != files {
		t.Errorf("%d blocks are linked of %d", linked, len(now))
	}
	for p := range 4 {
		alter(t, c, "2", p)
	}
	writeCut(t, source, "3", files, keys, but("2", -1, ""))
	n.WaitCurrent(t, "db", "3")
	n.WaitLog(t, fmt.Sprintf("unchanged=%d/%d", files-4, files))
	expectCut(t, n, "3", files, keys, but("1", 7, "2"))
}

// alter flips a byte of a block that is being served.
func alter(t *testing.T, c process.Config, version string, p int) {
	t.Helper()
	path := filepath.Join(contentDir(c.Store, "db", version), fmt.Sprintf("%05d.block", p))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	expect.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, 1000)
	b[0] ^= 0x10
	_, werr := f.WriteAt(b, 1000)
	expect.NoError(t, errors.Join(err, werr, f.Close()))
}

// TestUnchangedFinishedBlocks: blocks of a finished version are linked by their hashes.
func TestUnchangedFinishedBlocks(t *testing.T) {
	t.Parallel()
	const files, keys = 20, 2000
	jobs := t.TempDir()
	to, c := newNode(t)
	writeCut(t, jobs, "1", files, keys, func(int) string { return "" })
	writeCut(t, jobs, "2", files, keys, but("1", 3, ""))
	buildBlocks(t, filepath.Join(jobs, "db/1"), filepath.Join(to, "db/1"))
	n := process.Serve(t, c, "db", "1")
	first := inodes(t, c, "1")
	buildBlocks(t, filepath.Join(jobs, "db/2"), filepath.Join(to, "db/2"))
	n.WaitCurrent(t, "db", "2")
	n.WaitLog(t, fmt.Sprintf("unchanged=%d/%d", files-1, files))
	if written, all := fresh(first, inodes(t, c, "2")); written == 0 || written*10 > all {
		t.Errorf("%d of %d bytes are written", written, all)
	}
	expectCut(t, n, "2", files, keys, but("1", 3, "2"))
}
