package unchanged_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/load"
	"sequins/load/unchanged"
	"sequins/shard"
	"sequins/source"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a local source and a store.
type world struct {
	t     *testing.T
	root  string
	src   source.Source
	store *store.Store
	opts  load.Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), opts: load.Options{Partitioner: "auto"}}
	src, err := local.New(w.root)
	expect.NoError(t, err)
	w.src = src
	w.store, err = store.Open(t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, w.store.Close()) })
	return w
}

// model is the records of a version.
type model map[string]string

// put writes a version of files SequenceFiles, cut by String, or anyhow if they are mixed. Each file's marker is its content's.
func (w *world) put(version string, files int, m model, mixed bool) {
	w.t.Helper()
	by := shard.String.Partition
	if mixed {
		by = sequencefiles.InTurn()
	}
	sequencefiles.WriteParts(w.t, filepath.Join(w.root, "db", version), files, by, func(add func(key, value string)) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			add(key, m[key])
		}
	})
}

// run does what a load process does. It returns what was linked.
func (w *world) run(ctx context.Context, version string) (linked []int, size int64, err error) {
	sums := unchanged.Watch(w.src)
	loader := load.New(sums, nil, w.opts)
	plan, err := loader.Plan(ctx, "db", version)
	if err != nil {
		return nil, 0, err
	}
	dir, err := w.store.Create("db", plan.Manifest())
	if err != nil {
		return nil, 0, err
	}
	all := make([]int, plan.Partitions)
	for p := range all {
		all[p] = p
	}
	want, err := dir.Missing(all)
	if err != nil {
		return nil, 0, err
	}
	to := dir.Staging()
	reuse := unchanged.New(ctx, loader, sums, plan, to)
	linked, size, err = reuse.Link(ctx, want)
	if err != nil {
		return nil, 0, err
	}
	if err := dir.Publish(to, linked...); err != nil {
		return nil, 0, err
	}
	if want, err = dir.Missing(all); err != nil {
		return nil, 0, err
	}
	err = loader.LoadInto(ctx, plan, load.Target{Staging: to, Want: want, Have: len(linked), MadeFrom: reuse.MadeFrom, Publish: func(partitions []int) error {
		return dir.Publish(to, partitions...)
	}})
	return linked, size, err
}

func (w *world) load(version string) (linked []int) {
	w.t.Helper()
	linked, _, err := w.run(w.t.Context(), version)
	expect.NoError(w.t, err)
	return linked
}

// check compares all records of a version's blocks with the model.
func (w *world) check(version string, m model) {
	w.t.Helper()
	dir := w.dir(version)
	complete, err := dir.Complete()
	expect.NoError(w.t, err)
	got := model{}
	for _, o := range dir.OpenAll(complete) {
		expect.NoError(w.t, o.Err)
		expect.NoError(w.t, o.Block.Verify(w.t.Context()))
		for it := o.Block.Iter(nil, nil); it.Next(); {
			got[string(it.Key())] = string(it.Value().Bytes())
		}
		expect.NoError(w.t, o.Block.Close())
	}
	if !maps.Equal(got, m) || len(complete) != dir.Manifest().Partitions {
		w.t.Fatalf("version %s has %d blocks with %d records, and the model %d", version, len(complete), len(got), len(m))
	}
}

func (w *world) block(version string, p int) string {
	w.t.Helper()
	return w.dir(version).BlockPath(p)
}

// dir returns the directory of the only content of a version.
func (w *world) dir(version string) (dir *store.Dir) {
	w.t.Helper()
	inputs, err := w.store.Contents("db")
	expect.NoError(w.t, err)
	for _, in := range inputs {
		if in.Name == version && dir == nil {
			dir, err = w.store.Dir("db", in)
			expect.NoError(w.t, err)
		} else if in.Name == version {
			w.t.Fatalf("version %s has several contents", version)
		}
	}
	return dir
}

func (w *world) remove(version string) {
	w.t.Helper()
	expect.NoError(w.t, w.store.Remove("db", w.dir(version).Manifest().Content().Input))
}

// inode returns the number and the names of a file.
func inode(t *testing.T, path string) (number, links uint64) {
	t.Helper()
	info, err := os.Stat(path)
	expect.NoError(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Ino, uint64(stat.Nlink) //nolint:unconvert // its type differs between platforms
}

// same reports whether two versions have one file as the block of a partition.
func (w *world) same(p int, a, b string) bool {
	w.t.Helper()
	first, _ := inode(w.t, w.block(a, p))
	second, _ := inode(w.t, w.block(b, p))
	return first == second
}

// numbers returns n records with values of a version.
func numbers(n int, version string) model {
	m := model{}
	for i := range n {
		m[fmt.Sprintf("key-%06d", i)] = fmt.Sprintf("%s/%d", version, i)
	}
	return m
}

// touch sets the time of a file.
func touch(t *testing.T, path string, at time.Time) {
	t.Helper()
	expect.NoError(t, os.Chtimes(path, at, at))
}
