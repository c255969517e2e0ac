package unchanged_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/load"
	"sequins/load/build"
	"sequins/load/unchanged"
	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
)

// written returns the size of the blocks of a version that no other version has, and of all of them.
func (w *world) written(version string, partitions int) (own, all int64) {
	w.t.Helper()
	for p := range partitions {
		info, err := os.Stat(w.block(version, p))
		expect.NoError(w.t, err)
		all += info.Size()
		if _, links := inode(w.t, w.block(version, p)); links == 1 {
			own += info.Size()
		}
	}
	return own, all
}

// A version in which one partition of a hundred has changed writes one block.
func TestOneOfAHundred(t *testing.T) {
	w := newWorld(t)
	const partitions = 100
	first := numbers(20_000, "1")
	w.put("1", partitions, first, false)
	if linked := w.load("1"); len(linked) != 0 {
		t.Errorf("linked %v of the first version", linked)
	}
	second := model{}
	for key, value := range first {
		if second[key] = value; shard.String.Partition([]byte(key), partitions) == 42 {
			second[key] = "new " + value
		}
	}
	w.put("2", partitions, second, false)
	if linked := w.load("2"); len(linked) != partitions-1 || slices.Contains(linked, 42) {
		t.Errorf("linked %v", linked)
	}
	own, all := w.written("2", partitions)
	t.Logf("%d of %d bytes written: %.2f %%", own, all, 100*float64(own)/float64(all))
	if own == 0 || own*50 > all {
		t.Errorf("%d of %d bytes are of this version alone", own, all)
	}
	w.check("1", first)
	w.check("2", second)

	// Links do not depend on the version that a block was made for.
	w.remove("1")
	w.put("3", partitions, second, false)
	if linked := w.load("3"); len(linked) != partitions {
		t.Errorf("linked %d", len(linked))
	}
	w.check("3", second)
}

// Only the content of a partition's files counts: not their names and times, and not what is known of other partitions.
func TestOnlyContentCounts(t *testing.T) {
	w := newWorld(t)
	m := numbers(100, "1")
	w.put("1", 4, m, false)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for p := range 4 {
		touch(t, filepath.Join(w.root, "db/1", fmt.Sprintf("part-r-%05d", p)), at)
	}
	w.load("1")

	// The same names, sizes and times, with another content.
	other := numbers(100, "2")
	w.put("2", 4, other, false)
	for p := range 4 {
		name := fmt.Sprintf("part-r-%05d", p)
		touch(t, filepath.Join(w.root, "db/2", name), at)
		was, err := os.Stat(filepath.Join(w.root, "db/1", name))
		expect.NoError(t, err)
		now, err := os.Stat(filepath.Join(w.root, "db/2", name))
		expect.NoError(t, err)
		if was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) {
			t.Fatal("the files can be told apart")
		}
	}
	if linked := w.load("2"); len(linked) != 0 {
		t.Errorf("linked %v of another content", linked)
	}
	w.check("2", other)

	// Other names and times, with the same content.
	w.put("3", 4, m, false)
	for p := range 4 {
		dir := filepath.Join(w.root, "db/3")
		expect.NoError(t, os.Rename(filepath.Join(dir, fmt.Sprintf("part-r-%05d", p)), filepath.Join(dir, fmt.Sprintf("part-%05d-of-today", p))))
	}
	if linked := w.load("3"); len(linked) != 4 || !w.same(2, "1", "3") || w.same(2, "2", "3") {
		t.Errorf("linked %v", linked)
	}
	w.check("3", m)
}

// Blocks of other settings are not linked, and those of the former settings are afterwards.
func TestOtherSettings(t *testing.T) {
	w := newWorld(t)
	m := numbers(100, "1")
	w.put("1", 4, m, false)
	w.load("1")
	changes := map[string]func(o *load.Options){
		"compression":       func(o *load.Options) { o.Compression = blocks.Compression(1) - o.Compression },
		"block size":        func(o *load.Options) { o.BlockSize = 8 << 10 },
		"partitioner":       func(o *load.Options) { o.Partitioner = "string" }, // not aligned
		"max_record_errors": func(o *load.Options) { o.MaxRecordErrors = 5 },
		"partitions":        func(o *load.Options) { o.Partitioner, o.Partitions = "string", 7 },
	}
	before := w.opts
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w.opts = before
			change(&w.opts)
			w.put("2", 4, m, false)
			if linked := w.load("2"); len(linked) != 0 {
				t.Errorf("linked %v", linked)
			}
			w.check("2", m)
			w.remove("2")
			w.opts = before
			if linked := w.load("2"); len(linked) != 4 {
				t.Errorf("linked %v", linked)
			}
			w.remove("2")
		})
	}
}

// All or none of the partitions are linked if the files are not aligned with them.
func TestMixedFiles(t *testing.T) {
	w := newWorld(t)
	m := numbers(500, "1")
	w.put("1", 5, m, true)
	w.load("1")
	w.put("2", 5, m, true)
	if linked := w.load("2"); len(linked) != 5 {
		t.Errorf("linked %v", linked)
	}
	w.check("2", m)
	m["key-000007"] = "changed"
	w.put("3", 5, m, true)
	if linked := w.load("3"); len(linked) != 0 {
		t.Errorf("linked %v", linked)
	}
	w.check("3", m)
}

// A damaged block is not linked, and one that several versions share can be replaced in one.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	m := numbers(1000, "1")
	w.put("1", 2, m, false)
	w.load("1")
	w.put("2", 2, m, false)
	w.load("2")
	data, err := os.ReadFile(w.block("2", 1))
	expect.NoError(t, err)
	f, err := os.OpenFile(w.block("2", 1), os.O_WRONLY, 0)
	expect.NoError(t, err)
	_, err = f.WriteAt([]byte{data[len(data)/3] ^ 1}, int64(len(data)/3)) // in both
	expect.NoError(t, err)
	expect.NoError(t, f.Close())

	dir := w.dir("2")
	expect.NoError(t, dir.SetAside(1))
	if linked := w.load("2"); len(linked) != 0 {
		t.Errorf("linked %v", linked)
	}
	w.check("2", m)
	if w.same(1, "1", "2") || !w.same(0, "1", "2") {
		t.Error("the wrong block was replaced")
	}

	// The newest version whose block is whole is linked, whichever is damaged.
	w.put("3", 2, m, false)
	if linked := w.load("3"); len(linked) != 2 || !w.same(1, "2", "3") {
		t.Errorf("linked %v", linked)
	}
	w.check("3", m)
	dir = w.dir("1")
	expect.NoError(t, dir.SetAside(1))
	if linked := w.load("1"); len(linked) != 1 || !w.same(1, "1", "3") {
		t.Errorf("linked %v", linked)
	}
	w.check("1", m)
}

// A finished block is linked if its file is that of the manifest, to the last byte; otherwise it is copied.
func TestFinished(t *testing.T) {
	w := newWorld(t)
	m := numbers(1000, "1")
	w.put("1", 2, m, false)
	at := func(version string) build.Place { return build.Place{Source: w.src, DB: "db", Version: version} }
	_, err := build.Run(t.Context(), build.Job{From: at("1"), To: at("2").String(), Release: "test"}, nil)
	expect.NoError(t, err)
	if linked := w.load("2"); len(linked) != 0 {
		t.Errorf("linked %v", linked)
	}
	for _, version := range []string{"3", "4"} {
		expect.NoError(t, os.CopyFS(at(version).String(), os.DirFS(at("2").String())))
	}
	if linked := w.load("3"); len(linked) != 2 || !w.same(0, "2", "3") || !w.same(1, "2", "3") {
		t.Errorf("linked %v", linked)
	}
	w.check("3", m)

	data, err := os.ReadFile(w.block("3", 1))
	expect.NoError(t, err)
	f, err := os.OpenFile(w.block("3", 1), os.O_WRONLY, 0)
	expect.NoError(t, err)
	_, err = f.WriteAt([]byte{data[10] ^ 1}, 10)
	expect.NoError(t, err)
	expect.NoError(t, f.Close())
	if linked := w.load("4"); !slices.Equal(linked, []int{0}) {
		t.Errorf("linked %v", linked)
	}
	w.check("4", m)
}

// A file in the place of a block is not linked if it is not a block, or another block.
func TestForgedBlock(t *testing.T) {
	w := newWorld(t)
	m := numbers(100, "1")
	w.put("1", 3, m, false)
	w.load("1")
	expect.NoError(t, os.Remove(w.block("1", 0)))
	expect.NoError(t, os.Link(w.block("1", 2), w.block("1", 0)))
	expect.NoError(t, os.WriteFile(w.block("1", 2)+"x", []byte("x"), 0o644))
	expect.NoError(t, os.Rename(w.block("1", 2)+"x", w.block("1", 2)))
	w.put("2", 3, m, false)
	if linked := w.load("2"); !slices.Equal(linked, []int{1}) {
		t.Errorf("linked %v", linked)
	}
	w.check("2", m)
}

// A source whose version changes once it has been opened a number of times.
type changing struct {
	source.Source
	opens  int
	change func()
}

func (c *changing) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if c.opens++; c.opens == 2 && version == "2" {
		c.change()
	}
	return c.Source.Contents(ctx, db, version)
}

// A version that changes between its plan and its links is not published.
func TestChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	m := numbers(100, "1")
	w.put("1", 2, m, false)
	w.load("1")
	w.put("2", 2, m, false)
	w.src = &changing{Source: w.src, change: func() { w.put("2", 2, numbers(120, "1"), false) }}
	_, _, err := w.run(t.Context(), "2")
	expect.Error(t, "the load", err, source.ErrChanged)
	dir := w.dir("2")
	entries, err := fs.Glob(os.DirFS(filepath.Dir(dir.BlockPath(0))), "*.block*")
	if err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// Random versions with random changes, of which random ones are removed, lose blocks or are loaded again: every version has the
// records of the model.
func TestRandomWalk(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(1, 2))
	kept := map[string]model{}
	m, all := numbers(300, "0"), 0
	for step := range 60 {
		version := fmt.Sprintf("%03d", step)
		m = change(rng, m)
		files := []int{6, 6, 6, 4}[rng.IntN(4)]
		w.opts.BlockSize = []int{0, 0, 0, 4 << 10}[rng.IntN(4)]
		w.put(version, files, m, rng.IntN(8) == 0)
		all += len(w.load(version))
		kept[version] = m
		for old := range kept {
			if len(kept) > 3 && old < version && rng.IntN(2) == 0 {
				w.remove(old)
				delete(kept, old)
				continue
			}
			if rng.IntN(4) == 0 {
				w.lose(rng, old)
			}
			w.check(old, kept[old])
		}
	}
	if all < 60 {
		t.Errorf("only %d blocks were linked", all)
	}
}

// lose sets a block of a version aside, as if it were damaged, and loads the version again.
func (w *world) lose(rng *rand.Rand, version string) {
	w.t.Helper()
	dir := w.dir(version)
	expect.NoError(w.t, dir.SetAside(rng.IntN(dir.Manifest().Partitions)))
	before := w.opts
	if _, _, err := w.run(w.t.Context(), version); err != nil {
		w.t.Fatal(err)
	}
	w.opts = before
}

// change returns a model with few changes, mostly of one partition.
func change(rng *rand.Rand, m model) model {
	next := model{}
	for key, value := range m {
		next[key] = value
	}
	for range rng.IntN(3) {
		key := fmt.Sprintf("key-%06d", rng.IntN(320))
		if rng.IntN(3) == 0 {
			delete(next, key)
		} else {
			next[key] = fmt.Sprintf("%d", rng.Uint64())
		}
	}
	return next
}

// A load that is cancelled while it links leaves nothing.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	m := numbers(100, "1")
	w.put("1", 2, m, false)
	w.load("1")
	w.put("2", 2, m, false)
	sums := unchanged.Watch(w.src)
	loader := load.New(sums, nil, w.opts)
	plan, err := loader.Plan(t.Context(), "db", "2")
	expect.NoError(t, err)
	dir, err := w.store.Create("db", plan.Manifest())
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	linked, _, err := unchanged.New(ctx, loader, sums, plan, dir.Staging()).Link(ctx, []int{0, 1})
	expect.Error(t, "Link", err, context.Canceled)
	entries, err := os.ReadDir(filepath.Dir(dir.BlockPath(0)))
	if err != nil || len(linked) > 0 || len(entries) != 2 { // the manifest and tmp
		t.Errorf("linked %v; left %v, %v", linked, entries, err)
	}
}
