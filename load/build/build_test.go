package build_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/input/finished"
	"sequins/load"
	"sequins/load/build"
	"sequins/shard"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/sequencefiles"
	"sequins/test/speed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		expect.NoError(t, err)
		return v
	}
}

// place is version 1 of db below a directory.
func place(t testing.TB, root string) build.Place {
	t.Helper()
	return build.Place{Source: must(local.New(root))(t), DB: "db", Version: "1"}
}

// write writes version 1 of db in n files, cut by a partitioner.
func write(t testing.TB, root string, by shard.Partitioner, n int, records map[string]string) {
	t.Helper()
	sequencefiles.WriteParts(t, filepath.Join(root, "db", "1"), n, by.Partition, func(add func(key, value string)) {
		for _, key := range slices.Sorted(maps.Keys(records)) {
			add(key, records[key])
		}
	})
}

func some(n int) map[string]string {
	records := make(map[string]string, n)
	for i := range n {
		records[fmt.Sprintf("key-%06d", i)] = fmt.Sprintf("value %d", i)
	}
	return records
}

// run builds a version into a new directory.
func run(t testing.TB, from build.Place, o load.Options) (build.Place, *finished.Manifest) {
	t.Helper()
	to := place(t, t.TempDir())
	m, err := build.Run(t.Context(), build.Job{From: from, To: to.String(), Options: o, Release: "test"}, nil)
	expect.NoError(t, err)
	return to, m
}

// loaded is a version in a store.
type loaded struct {
	plan     *load.Plan
	dir      *store.Dir
	progress load.Snapshot
}

// into loads all partitions of a version, as a node does.
func into(t testing.TB, from build.Place, o load.Options, want ...int) (*loaded, error) {
	t.Helper()
	s := must(store.Open(t.TempDir()))(t)
	t.Cleanup(func() { s.Close() })
	var p load.Progress
	l := load.New(from.Source, &p, o)
	plan, err := l.Plan(t.Context(), from.DB, from.Version)
	if err != nil {
		return nil, err
	}
	if want == nil {
		for p := range plan.Partitions {
			want = append(want, p)
		}
	}
	err = speed.Load(t.Context(), l, s, plan, want)
	dir, derr := s.Dir(from.DB, plan.Manifest().Content().Input)
	if derr != nil {
		t.Fatal(derr)
	}
	return &loaded{plan, dir, p.Snapshot()}, err
}

// same fails unless a version loaded from finished blocks has the bytes of those and of another load.
func same(t *testing.T, from, to build.Place, m *finished.Manifest, o load.Options) {
	t.Helper()
	own, copied := must(into(t, from, o))(t), must(into(t, to, o))(t)
	if own.plan.Partitions != m.Partitions || copied.plan.Partitions != m.Partitions || own.plan.Partitioner != copied.plan.Partitioner {
		t.Fatalf("%d, %d and %d partitions by %v and %v", own.plan.Partitions, m.Partitions, copied.plan.Partitions, own.plan.Partitioner, copied.plan.Partitioner)
	}
	if !own.plan.LastModified.Equal(copied.plan.LastModified) || !copied.plan.Aligned || copied.plan.Format != load.FormatBlocks {
		t.Errorf("plan %+v, want that of %+v", copied.plan, own.plan)
	}
	for p := range m.Partitions {
		a, b := must(os.ReadFile(own.dir.BlockPath(p)))(t), must(os.ReadFile(copied.dir.BlockPath(p)))(t)
		c := must(os.ReadFile(filepath.Join(to.String(), m.Blocks[p].Name)))(t)
		if !bytes.Equal(a, b) || !bytes.Equal(a, c) {
			t.Errorf("block %d: the node's own, the copy and the built one differ", p)
		}
	}
	if got := copied.progress; got.Records != m.Records() || got.Bytes != m.Size() || got.BytesDone != m.Size() || got.FilesDone != int64(m.Partitions) {
		t.Errorf("progress %+v", got)
	}
}

// What Hadoop, Spark, Sparkey and others wrote makes the same blocks, in all formats with all kinds of compression, cut by each function.
func TestFixtures(t *testing.T) {
	src := must(local.New(harness.FixturesDir(t)))(t)
	kinds := map[[3]string]bool{}
	for _, f := range harness.Fixtures(t) {
		kind := [3]string{f.Meta.Format, f.Meta.Compression, f.Meta.Partitioner}
		if kinds[kind] {
			continue
		}
		kinds[kind] = true
		t.Run(f.Name, func(t *testing.T) {
			o := load.Options{AllowEmpty: f.Meta.Records == 0, Fields: load.Fields{Key: f.Meta.KeyField, Value: f.Meta.ValueField}}
			from := build.Place{Source: src, DB: f.Name, Version: f.Meta.Version}
			to := build.Place{Source: must(local.New(t.TempDir()))(t), DB: f.Name, Version: f.Meta.Version}
			m := must(build.Run(t.Context(), build.Job{From: from, To: to.String(), Options: o}, nil))(t)
			same(t, from, to, m, o)
			if want := f.Final(t); m.Records() != int64(len(want)) {
				t.Errorf("%d records, want %d", m.Records(), len(want))
			}
		})
	}
}

func TestSizes(t *testing.T) {
	large := some(50)
	for i := range 20 {
		large[fmt.Sprintf("large-%d", i)] = strings.Repeat(fmt.Sprint(i), 200_000)
	}
	for _, tt := range []struct {
		name       string
		by         shard.Partitioner
		partitions int
		records    map[string]string
		o          load.Options
	}{
		{"one partition", shard.String, 1, some(1000), load.Options{}},
		{"300 partitions", shard.Hadoop, 300, some(2000), load.Options{Compression: blocks.FSST}},
		{"not aligned", shard.Hadoop, 5, some(1000), load.Options{Partitioner: "string", Compression: blocks.Zstd}},
		{"large values", shard.Spark, 3, large, load.Options{Compression: blocks.FSST, BlockSize: 16384}},
		{"no record", shard.String, 2, nil, load.Options{AllowEmpty: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, tt.by, tt.partitions, tt.records)
			to, m := run(t, place(t, root), tt.o)
			same(t, place(t, root), to, m, tt.o)
			if m.Records() != int64(len(tt.records)) || m.Partitions != tt.partitions {
				t.Errorf("%d records in %d partitions", m.Records(), m.Partitions)
			}
			copied := must(into(t, to, load.Options{AllowEmpty: true}))(t)
			for p := range m.Partitions {
				readAll(t, copied.dir.BlockPath(p), tt.records)
			}
		})
	}
}

// readAll compares the records of a block.
func readAll(t *testing.T, path string, want map[string]string) {
	t.Helper()
	r := must(blocks.Open(path))(t)
	defer r.Close()
	it := r.Iter(nil, nil)
	for it.Next() {
		v := it.Value()
		if got := must(io.ReadAll(v.Section(0, v.Len())))(t); string(got) != want[string(it.Key())] {
			t.Fatalf("%s is %.20q", it.Key(), got)
		}
	}
	if err := errors.Join(it.Err(), r.Verify(t.Context())); err != nil {
		t.Error(err)
	}
}

// A version of no files, with _SUCCESS, becomes an empty block; without allow_empty it is not loaded.
func TestNoFiles(t *testing.T) {
	root := t.TempDir()
	expect.NoError(t, errors.Join(os.MkdirAll(root+"/db/1", 0o755), os.WriteFile(root+"/db/1/_SUCCESS", nil, 0o644)))
	to, m := run(t, place(t, root), load.Options{AllowEmpty: true})
	same(t, place(t, root), to, m, load.Options{AllowEmpty: true})
	if !m.LastModified.IsZero() {
		t.Errorf("manifest %+v", m)
	}
	if _, err := into(t, to, load.Options{}); !errors.Is(err, load.ErrNoRecords) {
		t.Errorf("an empty version: %v", err)
	}
	// All blocks gone is not the same as no data files.
	expect.NoError(t, os.Remove(to.String()+"/part-00000.block"))
	if _, err := into(t, to, load.Options{AllowEmpty: true}); !errors.Is(err, load.ErrIncomplete) {
		t.Errorf("all blocks are gone: %v", err)
	}
}

// Nodes with other settings load the same content, and copies have other times.
func TestContent(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 4, some(400))
	to, _ := run(t, place(t, root), load.Options{})
	plan := func(o load.Options) *load.Plan {
		return must(load.New(to.Source, nil, o).Plan(t.Context(), "db", "1"))(t)
	}
	first := plan(load.Options{})
	now := time.Now().Add(time.Hour)
	for _, name := range must(filepath.Glob(to.String() + "/*"))(t) {
		expect.NoError(t, os.Chtimes(name, now, now))
	}
	for _, o := range []load.Options{{}, {Compression: blocks.Zstd, BlockSize: 8192}, {Partitioner: "hadoop"}, {Partitioner: "auto", Fields: load.Fields{Key: "k"}, AllowEmpty: true}} {
		again := plan(o)
		if again.Manifest().Content() != first.Manifest().Content() || !again.LastModified.Equal(first.LastModified) {
			t.Errorf("%+v: another plan", o)
		}
	}
	if o := (load.Options{}).PlannedBy(first.Manifest()); plan(o).Manifest().Content() != first.Manifest().Content() {
		t.Error("planned again from the manifest of the store, it is another plan")
	}
	// The names and sizes of another build of the version may be the same.
	other, _ := run(t, place(t, root), load.Options{})
	m := must(finished.Parse(must(os.ReadFile(other.String()+"/_BLOCKS.json"))(t), ""))(t)
	m.Release = "other"
	writeManifest(t, to, m)
	if plan(load.Options{}).Input == first.Input {
		t.Error("another manifest, and the same plan")
	}
}

func writeManifest(t testing.TB, to build.Place, m *finished.Manifest) {
	t.Helper()
	expect.NoError(t, os.WriteFile(to.String()+"/_BLOCKS.json", must(m.Encode())(t), 0o644))
}

func TestConfiguredPartitioner(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 4, some(400))
	to, _ := run(t, place(t, root), load.Options{})
	_, err := into(t, to, load.Options{Partitioner: "spark"})
	if err == nil || !strings.Contains(err.Error(), `configure "hadoop" or "auto"`) || !strings.Contains(err.Error(), "--partitioner spark") {
		t.Errorf("another partitioner is configured: %v", err)
	}
}

// Only the files of wanted partitions are read.
func TestOnlyWanted(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 4, some(400))
	to, m := run(t, place(t, root), load.Options{})
	damage(t, to, m.Blocks[0].Name, 50)
	got := must(into(t, to, load.Options{}, 1, 3))(t)
	if got.progress.Bytes != m.Blocks[1].Size+m.Blocks[3].Size || got.progress.Records != m.Blocks[1].Records+m.Blocks[3].Records {
		t.Errorf("progress %+v", got.progress)
	}
}

// Copies count against the limit of the bandwidth, and so does the manifest.
func TestBandwidth(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 3, some(20_000))
	to, m := run(t, place(t, root), load.Options{})
	const burst = 1 << 30
	limit := rate.NewLimiter(1, burst)
	must(into(t, to, load.Options{Bandwidth: limit}))(t)
	if took := burst - int64(limit.Tokens()); took < m.Size() || took > m.Size()+100_000 {
		t.Errorf("%d bytes were taken for blocks of %d", took, m.Size())
	}
}

// A partitioner that a record refutes is not that of the build, and nothing is left of the first attempt.
func TestRefuted(t *testing.T) {
	root := t.TempDir()
	records := map[string]string{}
	for i := range 50_000 {
		records[fmt.Sprintf("key-%06d", i)] = strings.Repeat("v", 100)
	}
	write(t, root, shard.Hadoop, 5, records)
	// One key in the wrong file, beyond the sample.
	f := must(os.OpenFile(root+"/db/1/part-r-00001", os.O_RDWR, 0))(t)
	data := must(io.ReadAll(f))(t)
	at := bytes.LastIndex(data[:len(data)/5*2], []byte("key-0"))
	was := data[at+9]
	if _, err := f.WriteAt([]byte{was ^ 1}, int64(at+9)); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, f.Close())
	first := must(load.New(place(t, root).Source, nil, load.Options{}).Plan(t.Context(), "db", "1"))(t)
	to, m := run(t, place(t, root), load.Options{})
	if first.Partitioner != shard.Hadoop || m.Partitioner != "string" {
		t.Fatalf("cut by %v, planned as %v", m.Partitioner, first.Partitioner)
	}
	copied := must(into(t, to, load.Options{}))(t)
	var n int64
	for p := range m.Partitions {
		r := must(blocks.Open(copied.dir.BlockPath(p)))(t)
		n += r.Properties().Records
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if n != m.Records() {
		t.Errorf("%d records of %d", n, m.Records())
	}
}

// A throttled load takes the records of the manifest as read.
func TestThrottle(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 2, some(500))
	to, m := run(t, place(t, root), load.Options{})
	got := must(into(t, to, load.Options{Throttle: time.Microsecond}))(t)
	if got.progress.Records != m.Records() {
		t.Errorf("%d records of %d", got.progress.Records, m.Records())
	}
}
