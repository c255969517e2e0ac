package load

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/shard"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/faultfs"
	"sequins/test/sequencefiles"
)

// The disk fills up: the load fails with ENOSPC, its temporary files go, what
// was published stays, and with more room the next attempt finishes the rest.
func TestDiskFull(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 4, keys(4000)...)
	slices.Reverse(files[3].records)
	w.write(files, sequencefiles.WriterOptions{})
	want := model(files, shard.Hadoop, 4)
	kept := 0
	for free := int64(2000); ; free += 20_000 {
		disk := faultfs.New()
		local := check(store.OpenFS(disk, "/store"))(t)
		l := newLoader(w.src, local, nil, Options{Workers: 2, Memory: 64 << 10})
		plan := check(l.Plan(t.Context(), "db", "1"))(t)
		disk.SetFree(free)
		err := l.Load(t.Context(), plan, all(plan))
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("with %d bytes free: %v", free, err)
		}
		dir := newest(t, local)
		complete := check(dir.Complete())(t)
		kept += len(complete)
		entries := check(disk.ReadDir(filepath.Dir(dir.BlockPath(0))))(t)
		if len(entries) != len(complete)+2 { // the manifest and the directory for temporary files
			t.Errorf("with %d bytes free: %v is left, complete are %v", free, entries, complete)
		}
		if disk.OpenFiles() != 0 {
			t.Errorf("with %d bytes free: %d files are open", free, disk.OpenFiles())
		}
		disk.SetFree(1 << 30)
		expect.NoError(t, l.Load(t.Context(), plan, all(plan)))
		for p := range want {
			if got := faultyBlock(t, disk, dir, p); len(got) != len(want[p]) {
				t.Errorf("partition %d has %d records, want %d", p, len(got), len(want[p]))
			}
		}
	}
	if kept == 0 {
		t.Error("no attempt has published anything before it failed")
	}
}

// faultyBlock reads a block that lies in a faultfs.
func faultyBlock(t *testing.T, disk fsys.FS, dir *store.Dir, p int) map[string]bool {
	t.Helper()
	f := check(disk.Open(dir.BlockPath(p)))(t)
	defer f.Close()
	content := check(io.ReadAll(f))(t)
	r := check(blocks.NewReader(bytes.NewReader(content), int64(len(content)), "block"))(t)
	defer r.Close()
	got := map[string]bool{}
	it := r.Iter(nil, nil)
	for it.Next() {
		got[string(it.Key())] = true
	}
	expect.NoError(t, it.Err())
	return got
}

// Every call to the disk fails in turn, and every time the load fails with
// that error or succeeds in spite of it, and leaves nothing open.
func TestDiskFails(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 3, keys(300)...)
	w.write(files, sequencefiles.WriterOptions{})
	broken := errors.New("broken")
	for n := 1; ; n++ {
		disk := faultfs.New()
		local := check(store.OpenFS(disk, "/store"))(t)
		l := newLoader(w.src, local, nil, Options{Workers: 1})
		plan := check(l.Plan(t.Context(), "db", "1"))(t)
		before := disk.Calls()
		disk.FailAt(n, broken)
		err := l.Load(t.Context(), plan, all(plan))
		if err == nil && disk.Calls()-before < n {
			if n < 10 {
				t.Errorf("only %d calls to the disk", n)
			}
			return
		}
		if err != nil && !errors.Is(err, broken) {
			t.Fatalf("call %d failed: %v", n, err)
		}
		if disk.OpenFiles() != 0 {
			t.Errorf("call %d failed: %d files are open", n, disk.OpenFiles())
		}
		if err := l.Load(t.Context(), plan, all(plan)); err != nil {
			t.Fatalf("after call %d failed: %v", n, err)
		}
		dir := newest(t, local)
		for p, want := range model(files, shard.Hadoop, 3) {
			if got := faultyBlock(t, disk, dir, p); len(got) != len(want) {
				t.Errorf("after call %d failed: partition %d has %d records, want %d", n, p, len(got), len(want))
			}
		}
	}
}
