package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sequins/input/sequencefile"
	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

func (w *world) plan(opts Options) (*Plan, error) {
	return newLoader(w.src, w.store, nil, opts).Plan(w.t.Context(), "db", "1")
}

func TestPlanPartitioner(t *testing.T) {
	ascii := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("user:%08d", i*7919))
		}
		return all
	}
	uncut := func(n int, keys []string) []data { // by length and position: by no hash
		files := cut(shard.String, n)
		for i, k := range keys {
			f := &files[i%n]
			f.records = append(f.records, rec{key: k})
		}
		return files
	}
	late := func() []data { // cut by hadoop, but for the last record
		files := cut(shard.Hadoop, 5, ascii(2000)...)
		files[2].records = append(files[2].records, rec{key: "zzz"})
		return files
	}
	rename := func(files []data, names ...string) []data {
		for i := range files {
			files[i].name = names[i]
		}
		return files
	}
	tests := []struct {
		name    string
		files   []data
		option  string
		want    shard.Partitioner
		aligned bool
	}{
		{"string", cut(shard.String, 5, ascii(500)...), "", shard.String, true},
		{"hadoop", cut(shard.Hadoop, 5, ascii(500)...), "auto", shard.Hadoop, true},
		{"spark", cut(shard.Spark, 5, ascii(500)...), "auto", shard.Spark, true},
		{"cascading", cut(shard.Cascading, 5, ascii(500)...), "auto", shard.Cascading, true},
		{"cut by none", uncut(5, ascii(500)), "auto", shard.String, false},
		{"spark, ASCII, a power of two: string as well", cut(shard.Spark, 8, ascii(500)...), "auto", shard.String, true},
		{"the same, with a key that tells late", cut(shard.Spark, 8, append(ascii(2000), "ключ")...), "auto", shard.Spark, true},
		{"many files", cut(shard.Hadoop, 100, ascii(3000)...), "auto", shard.Hadoop, true},
		{"many files, few records", cut(shard.Hadoop, 300, ascii(5)...), "auto", shard.Hadoop, true},
		{"many files, one record", cut(shard.Cascading, 300, "x-é"), "auto", shard.Cascading, true},
		{"no records", cut(shard.Hadoop, 3), "auto", shard.String, true},
		{"one file", uncut(1, ascii(10)), "auto", shard.String, true},
		{"one file of some number", rename(uncut(1, ascii(10)), "part-r-00007"), "auto", shard.String, true},
		{"names without numbers", rename(cut(shard.Hadoop, 3, ascii(500)...), "a", "b", "c"), "auto", shard.Hadoop, true},
		{"numbers against the order of names", rename(cut(shard.Hadoop, 3, ascii(500)...), "part-00000", "part-00001", "part-00002-x"), "auto", shard.Hadoop, true},
		{"numbers beyond", rename(cut(shard.Hadoop, 3, ascii(500)...), "part-00000", "part-00001", "part-00003"), "auto", shard.String, false},
		{"a number twice", rename(cut(shard.Hadoop, 3, ascii(500)...), "part-m-00000", "part-r-00000", "part-r-00001"), "auto", shard.String, false},
		{"one record out of place, after the sample", late(), "auto", shard.Hadoop, true}, // and Load will tell

		{"set to string", cut(shard.String, 5, ascii(500)...), "string", shard.String, false},
		{"set to hadoop", cut(shard.String, 5, ascii(500)...), "hadoop", shard.Hadoop, true}, // likewise
		{"set to hadoop, files without place", rename(cut(shard.Hadoop, 3, ascii(50)...), "part-1", "part-2", "part-3"), "hadoop", shard.Hadoop, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(tt.files, sequencefiles.WriterOptions{})
			plan, err := w.plan(Options{Partitioner: tt.option, AllowEmpty: true})
			expect.NoError(t, err)
			if plan.Partitioner != tt.want || plan.Aligned != tt.aligned {
				t.Errorf("%v, aligned %v; want %v, %v", plan.Partitioner, plan.Aligned, tt.want, tt.aligned)
			}
		})
	}
}

// More than 99,999 files are numbered with six digits, against the order of
// their names.
func TestPlacesByNumber(t *testing.T) {
	p := &Plan{Format: FormatSequenceFile}
	for _, name := range []string{"part-r-00001", "part-r-00002", "part-r-000000", "part-r-3"} {
		p.Files = append(p.Files, source.File{Name: name})
	}
	if names, err := p.place(0); names.whole != 4 || err != nil {
		t.Fatal(names, err)
	}
	if diff := cmp.Diff([]int{1, 2, 0, 3}, p.parts); diff != "" {
		t.Error(diff)
	}
}

func TestPlanIsTheSameForEveryOrderOfReading(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.Spark, 64, keys(3000)...), sequencefiles.WriterOptions{Compression: sequencefiles.Block})
	first := check(w.plan(Options{}))(t)
	for range 10 {
		if diff := cmp.Diff(first, check(w.plan(Options{}))(t), cmp.AllowUnexported(Plan{}), cmpopts.IgnoreFields(Plan{}, "classes")); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestPlanErrors(t *testing.T) {
	seq := sequenceFile(t, []rec{{key: "a"}}, sequencefiles.WriterOptions{})
	log := sparkeyLog(t, []rec{{key: "a"}})
	tests := []struct {
		name  string
		files map[string][]byte
		opts  Options
		is    error
		says  []string
	}{
		{"no files", map[string][]byte{"_x": nil}, Options{}, ErrEmpty, []string{"db/1", "no data files"}},
		{"no files, allowed", map[string][]byte{"_x": nil}, Options{AllowEmpty: true}, ErrEmpty, []string{"_SUCCESS"}},
		{"no files, not allowed", map[string][]byte{"_SUCCESS": nil}, Options{}, ErrEmpty, nil},
		{"no files, not complete", map[string][]byte{"_x": nil}, Options{AllowEmpty: true, RequireSuccess: true}, ErrIncomplete, nil},
		{"not complete", map[string][]byte{"a": seq}, Options{RequireSuccess: true}, ErrIncomplete, []string{"_SUCCESS"}},
		{"a listed file is missing", map[string][]byte{"a": seq, "_SUCCESS": []byte(`{"filenames":["/db/1/a","/db/1/b"]}`)}, Options{}, ErrIncomplete, []string{"/db/1/b"}},
		{"mixed", map[string][]byte{"part-0.spl": log, "part-1": seq, "part-2": seq, "part-0.spi": nil}, Options{}, ErrMixed, []string{"part-0.spl", "part-1"}},
		{"an alien file", map[string][]byte{"part-0": seq, "readme.txt": []byte("Hello, reader.")}, Options{}, sequencefile.ErrCorrupt,
			[]string{"readme.txt", `it begins with "Hell", unlike the other files (sequencefile)`, "move it away, or give it a name that begins with _ or ."}},
		{"indexes without a log", map[string][]byte{"part-0": seq, "part-1.spi": []byte("an index")}, Options{}, sequencefile.ErrCorrupt, []string{"part-1.spi"}},
		{"a log without a number", map[string][]byte{"part.spl": log}, Options{}, nil, []string{"part.spl"}},
		{"a log with a large number", map[string][]byte{"part-65536.spl": log}, Options{}, nil, []string{"part-65536.spl", "65536"}},
		{"a log with a huge number", map[string][]byte{"part-99999999999999999999.spl": log}, Options{}, nil, []string{"part-99999999999999999999.spl"}},
		{"a partitioner that is none", map[string][]byte{"a": seq}, Options{Partitioner: "murmur"}, nil, []string{"murmur"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			for name, content := range tt.files {
				w.put(name, content)
			}
			plan, err := w.plan(tt.opts)
			if err == nil {
				t.Fatalf("planned %+v", plan)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			for _, s := range append(tt.says, "db", "1") {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not name %s", err, s)
				}
			}
		})
	}
}

func TestPlanTooManyFiles(t *testing.T) {
	p := &Plan{Format: FormatSequenceFile, Files: make([]source.File, shard.MaxPartitions+1)}
	if _, err := p.place(0); err == nil {
		t.Error("placed more files than there can be partitions")
	}
}

func TestPlanLastModified(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.String, 3, keys(10)...), sequencefiles.WriterOptions{})
	newest := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, when := range map[string]time.Time{"part-r-00000": newest.Add(-time.Hour), "part-r-00001": newest, "part-r-00002": newest.Add(-time.Minute)} {
		expect.NoError(t, os.Chtimes(filepath.Join(w.root, "db/1", name), when, when))
	}
	if plan := check(w.plan(Options{}))(t); !plan.LastModified.Equal(newest) {
		t.Errorf("%v, want %v", plan.LastModified, newest)
	}
}

func TestSampleGroups(t *testing.T) {
	for _, n := range []int{1, 2, 31, 32, 33, 64, 65, 1000, 4097} {
		groups := sampleGroups(n)
		seen := make([]int, n)
		for _, g := range groups {
			if len(g) == 0 || len(g) > sampleFiles || !slices.IsSorted(g) {
				t.Fatalf("of %d files: group %v", n, g)
			}
			for _, i := range g {
				seen[i]++
			}
		}
		looked := 0
		for _, times := range seen {
			looked += times
		}
		if slices.Max(seen) != 1 || looked != min(n, sampleMost) {
			t.Errorf("of %d files, %d are looked at, one of them %d times", n, looked, slices.Max(seen))
		}
	}
	if got := sampleGroups(320)[0]; got[1] != 10 || got[31] != 310 {
		t.Errorf("not spread evenly: %v", got)
	}
}

func TestSplit(t *testing.T) {
	plan := func(sizes ...int64) *Plan {
		p := new(Plan)
		for _, s := range sizes {
			p.Files = append(p.Files, source.File{Size: s})
		}
		return p
	}
	tests := []struct {
		plan *Plan
		n    int
		want [][]int
	}{
		{plan(5), 1, [][]int{{0}}},
		{plan(0, 0, 0), 2, [][]int{{0, 1}, {2}}},
		{plan(10, 10, 10, 10), 2, [][]int{{0, 1}, {2, 3}}},
		{plan(100, 1, 1, 1), 2, [][]int{{0}, {1, 2, 3}}},
		{plan(1, 1, 1, 100), 2, [][]int{{0, 1, 2}, {3}}},
		{plan(1, 1, 1), 3, [][]int{{0}, {1}, {2}}},
		{plan(100, 1, 1), 3, [][]int{{0}, {1}, {2}}},
		{plan(1, 1, 100), 3, [][]int{{0}, {1}, {2}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.plan.split(tt.n)); diff != "" {
			t.Errorf("split of %v in %d (-want +got):\n%s", tt.plan.Files, tt.n, diff)
		}
	}
}

func TestLogPartition(t *testing.T) {
	for name, want := range map[string]int{
		"part-00012-00034.spl": 12, "7.spl": 7, "a1b2": 1, "part-65535": 65535,
		"20260131-part-00000.spl": 0, "20260131-part-00017.spl": 17, "2026.part-r-00003.spl": 3, "2026_part_4.spl": 4, "1-part5": 5,
		"department-7-part-8": 8, "department-9": 9, "part-x": -1, "part": -1, "": -1,
		"20260131.spl": -1, "part-65536": -1, "part-99999999999999999999.spl": -1, "7-part-65536.spl": -1,
	} {
		got, err := LogPartition(name)
		if (err == nil) != (want >= 0) || err == nil && got != want {
			t.Errorf("LogPartition(%q) = %d, %v", name, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("LogPartition(%q): %v", name, err)
		}
	}
}

// Lanes and shards are as many as cores, but no more than there are files,
// partitions, and memory for a sorter of each with each.
func TestShape(t *testing.T) {
	tests := []struct {
		workers, files, partitions int
		memory                     int64
		lanes, shards              int
	}{
		{2, 20, 20, 256 << 20, 2, 2},
		{16, 100, 100, 1 << 40, 16, 16},
		{16, 3, 5, 1 << 40, 3, 5},
		{16, 100, 100, 256 << 20, 4, 4},
		{16, 100, 1, 256 << 20, 16, 1},
		{16, 1, 100, 256 << 20, 1, 16},
		{4, 100, 100, 1, 1, 1},
	}
	for _, tt := range tests {
		plan := &Plan{Files: make([]source.File, tt.files)}
		r := routed{job: &job{Loader: New(nil, nil, Options{Workers: tt.workers}), plan: plan}, todo: make([]int, tt.partitions), memory: tt.memory}
		if lanes, shards := r.shape(); lanes != tt.lanes || shards != tt.shards {
			t.Errorf("%+v: %d lanes and %d shards", tt, lanes, shards)
		}
	}
}

// A plan reads the keys of a Parquet file alone, however many columns the values are of: all that are read are in
// memory.
func TestPlanReadsKeys(t *testing.T) {
	w := newWorld(t)
	content := parquetFile(t)
	for i := range 3 {
		w.put(fmt.Sprintf("part-%05d", i), content)
	}
	read := func(value string) (n int) {
		var mu sync.Mutex
		src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
			return body{ReadCloser: f, read: func(p []byte) (int, error) {
				n1, err := f.Read(p)
				mu.Lock()
				defer mu.Unlock()
				n += n1
				return n1, err
			}}
		}}
		check(newLoader(src, w.store, nil, Options{Fields: Fields{Key: "ID", Value: value}}).Plan(t.Context(), "db", "1"))(t)
		return n
	}
	if keys, records := read("ID"), read(""); records > keys+keys/10 {
		t.Errorf("%d bytes are read of the records, and %d of the keys", records, keys)
	}
}
