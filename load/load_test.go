package load

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

func TestAligned(t *testing.T) {
	for _, by := range onStrings {
		t.Run(by.String(), func(t *testing.T) {
			w := newWorld(t)
			files := cut(by, 5, keys(2000)...)
			w.write(files, sequencefiles.WriterOptions{})
			plan := w.load(Options{}, 4, 1, 1)
			if plan.Partitioner != by || !plan.Aligned || plan.Partitions != 5 {
				t.Errorf("plan %+v", plan)
			}
			w.compare(plan, model(files, by, 5), []int{1, 4})
		})
	}
}

// Only the files of wanted partitions are opened: the others may be damaged.
func TestAlignedOpensOnlyWhatItNeeds(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 3, keys(3000)...)
	w.write(files, sequencefiles.WriterOptions{})
	l := newLoader(w.src, w.store, nil, Options{})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	was := check(os.Stat(filepath.Join(w.root, "db/1/part-r-00000")))(t)
	data := check(os.ReadFile(filepath.Join(w.root, "db/1/part-r-00000")))(t)
	clear(data[4<<10 : len(data)-4<<10]) // its ends, which identify it, stay
	w.put("part-r-00000", data)
	expect.NoError(t, os.Chtimes(filepath.Join(w.root, "db/1/part-r-00000"), was.ModTime(), was.ModTime()))
	expect.NoError(t, l.Load(t.Context(), plan, []int{1, 2}))
	w.compare(plan, model(files, shard.Hadoop, 3), []int{1, 2})
}

func TestRouted(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 7, keys(2000)...)
	w.write(files, sequencefiles.WriterOptions{})
	plan := w.load(Options{Partitioner: "string"}, 0, 3, 6)
	if plan.Partitioner != shard.String || plan.Aligned {
		t.Errorf("plan %+v", plan)
	}
	w.compare(plan, model(files, shard.String, 7), []int{0, 3, 6})
}

// The later file wins, also over files that other goroutines read.
func TestLastFileWins(t *testing.T) {
	w := newWorld(t)
	var files []data
	for i := range 9 {
		f := data{name: fmt.Sprintf("f%d", i)}
		for k := range 200 {
			f.records = append(f.records,
				rec{key: fmt.Sprint("key", k*(i+1)), value: fmt.Sprint("first of ", i)},
				rec{key: fmt.Sprint("key", k*(i+1)), value: fmt.Sprint("last of ", i)})
		}
		files = append(files, f)
	}
	w.write(files, sequencefiles.WriterOptions{})
	for workers := range 6 {
		w.newStore()
		plan := w.load(Options{Workers: workers})
		w.compare(plan, model(files, shard.String, 9), all(plan))
	}
}

func TestSortedWithEqualNeighbours(t *testing.T) {
	w := newWorld(t)
	files := []data{{"part-00000", []rec{
		{key: "", value: "empty key"}, {key: "a", value: "1"}, {key: "a", value: "2"}, {key: "a\x00", value: "3"},
		{key: "b", value: "4"}, {key: "b", value: ""}, {key: "c", value: "5"}, {key: "c", value: "6"},
	}}}
	w.write(files, sequencefiles.WriterOptions{})
	plan := w.load(Options{})
	w.compare(plan, model(files, shard.String, 1), []int{0})
}

func TestSparkey(t *testing.T) {
	w := newWorld(t)
	files := []data{
		{"part-00000-00000.spl", nil},
		{"part-00000-00001.spl", nil},
		{"part-00003.spl", nil}, // 1 and 2 have no records, and no log
	}
	for _, k := range keys(400) {
		switch p := shard.String.Partition([]byte(k), 4); p {
		case 0:
			files[0].records = append(files[0].records, rec{key: k, value: "old"})
			files[1].records = append(files[1].records, rec{key: k, value: "new"}, rec{key: k + "x"}) // one of them elsewhere
			files[1].records = files[1].records[:len(files[1].records)-1]
			if len(files[1].records)%3 == 0 {
				files[1].records = append(files[1].records, rec{key: k, deleted: true})
			}
		case 3:
			files[2].records = append(files[2].records, rec{key: k, value: "3"})
		}
	}
	w.write(files, sequencefiles.WriterOptions{})
	w.put("part-00003.spi.sz", []byte("an index"))
	w.put("part-00003.spi", []byte("an index"))
	plan := w.load(Options{})
	if !plan.Aligned || plan.Partitions != 4 || plan.Format != FormatSparkey || len(plan.Files) != 3 {
		t.Errorf("plan %+v", plan)
	}
	want := model(files, shard.String, 4)
	w.compare(plan, want, all(plan))
	if len(want[1]) > 0 || len(want[0]) == 0 || len(want[3]) == 0 {
		t.Error("the test tests nothing")
	}
}

func TestEmpty(t *testing.T) {
	w := newWorld(t)
	w.put("_SUCCESS", nil)
	plan := w.load(Options{AllowEmpty: true})
	if plan.Partitions != 1 || !plan.LastModified.IsZero() {
		t.Errorf("plan %+v", plan)
	}
	w.compare(plan, []map[string]string{{}}, []int{0})
}

func TestLargeValues(t *testing.T) {
	w := newWorld(t)
	files := []data{{"f0", nil}, {"f1", nil}}
	for i := range 12 {
		r := rec{key: fmt.Sprint("key", 50-i), value: strings.Repeat(fmt.Sprint(i, ","), 400_000)}
		files[i%2].records = append(files[i%2].records, r, rec{key: fmt.Sprint("key", i)})
	}
	w.write(files, sequencefiles.WriterOptions{})
	for _, workers := range []int{1, 2} {
		w.newStore()
		plan := w.load(Options{Workers: workers})
		w.compare(plan, model(files, shard.String, 2), all(plan))
	}
}

// What is complete is kept and not loaded again.
func TestKeepsWhatIsThere(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.String, 3, keys(300)...)
	w.write(files, sequencefiles.WriterOptions{})
	plan := w.load(Options{}, 1)
	before := check(os.Stat(w.dir().BlockPath(1)))(t)
	var p Progress
	l := newLoader(w.src, w.store, &p, Options{})
	expect.NoError(t, l.Load(t.Context(), plan, all(plan)))
	after := check(os.Stat(w.dir().BlockPath(1)))(t)
	if !os.SameFile(before, after) {
		t.Error("the block was made again")
	}
	w.compare(plan, model(files, shard.String, 3), all(plan))
	if s := p.Snapshot(); s.Files != 2 || s.FilesDone != 2 || s.Partitions != 3 || s.PartitionsDone != 3 || s.Bytes != s.BytesDone || s.Records != 300-int64(len(model(files, shard.String, 3)[1])) {
		t.Errorf("progress %+v", s)
	}
	expect.NoError(t, l.Load(t.Context(), plan, all(plan)))
	if s := p.Snapshot(); s.Files != 0 || s.PartitionsDone != 3 || s.Started.IsZero() {
		t.Errorf("progress when there was nothing to do: %+v", s)
	}
}

// A version whose files have changed is loaded anew.
func TestAnotherPlanReplaces(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.String, 3, keys(300)...), sequencefiles.WriterOptions{})
	w.load(Options{})
	files := cut(shard.String, 3, keys(310)...)
	w.write(files, sequencefiles.WriterOptions{})
	plan := w.load(Options{}, 2)
	w.compare(plan, model(files, shard.String, 3), []int{2})
}

func TestProgress(t *testing.T) {
	for _, opts := range []Options{{}, {Partitioner: "string"}} {
		w := newWorld(t)
		files := cut(shard.String, 4, keys(20_000)...)
		slices.Reverse(files[0].records) // read twice if aligned
		w.write(files, sequencefiles.WriterOptions{})
		p := new(Progress)
		l := newLoader(w.src, w.store, p, opts)
		plan := check(l.Plan(t.Context(), "db", "1"))(t)
		var size int64
		for _, f := range plan.Files {
			size += f.Size
		}
		sampled := p.Snapshot()
		expect.NoError(t, l.Load(t.Context(), plan, all(plan)))
		got := p.Snapshot()
		if got.Read != 5 && plan.Aligned || got.Fetched-sampled.Fetched < size || got.Scanned-sampled.Scanned < 20_000 {
			t.Errorf("all that was read: %+v", got)
		}
		got = Snapshot{Files: got.Files, FilesDone: got.FilesDone, Bytes: got.Bytes, BytesDone: got.BytesDone, Records: got.Records, Partitions: got.Partitions, PartitionsDone: got.PartitionsDone}
		want := Snapshot{Files: 4, FilesDone: 4, Bytes: size, BytesDone: size, Records: 20_000, Partitions: 4, PartitionsDone: 4}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	}
}

// The progress of a file with few, large values is heard of on the way, too: what has been read of it and not been told
// of is bounded.
func TestProgressOfLargeValues(t *testing.T) {
	const value = 256 << 10
	var records []rec
	for _, k := range keys(64) {
		records = append(records, rec{key: k, value: strings.Repeat(k[:1], value)})
	}
	w := newWorld(t)
	w.put("part-r-00000", sequenceFile(t, records, sequencefiles.WriterOptions{}))
	plan := check(newLoader(w.src, w.store, nil, Options{}).Plan(t.Context(), "db", "1"))(t)
	p := new(Progress)
	var read, behind int64
	src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
		return body{ReadCloser: f, read: func(b []byte) (int, error) {
			behind = max(behind, read-p.Snapshot().BytesDone)
			n, err := f.Read(b)
			read += int64(n)
			return n, err
		}}
	}}
	expect.NoError(t, newLoader(src, w.store, p, Options{}).Load(t.Context(), plan, all(plan)))
	if most := int64(reportBytes + 4*value); read < 64*value || behind > most {
		t.Errorf("of %d bytes, up to %d had been read and not told of; want at most %d", read, behind, most)
	}
}

func TestManifest(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.Spark, 5, keys(300)...), sequencefiles.WriterOptions{})
	plan := w.load(Options{}, 0)
	m := w.dir().Manifest()
	if m.Partitions != 5 || m.Partitioner != "spark" || !m.Aligned || m.Format != "sequencefile" || !m.LastModified.Equal(plan.LastModified) {
		t.Errorf("manifest %+v", m)
	}
	var names []string
	for i, f := range m.Files {
		names = append(names, f.Name)
		if f.Size != plan.Files[i].Size || f.Mark != plan.Files[i].Mark {
			t.Errorf("file %+v, listed %+v", f, plan.Files[i])
		}
	}
	if diff := cmp.Diff([]string{"part-r-00000", "part-r-00001", "part-r-00002", "part-r-00003", "part-r-00004"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestWanted(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.String, 3, keys(30)...), sequencefiles.WriterOptions{})
	l := newLoader(w.src, w.store, nil, Options{})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	for _, want := range [][]int{{3}, {-1}, {0, 1, 2, 3}} {
		if err := l.Load(t.Context(), plan, want); err == nil {
			t.Errorf("loaded partitions %v of 3", want)
		}
	}
	if err := l.Load(t.Context(), plan, nil); err != nil {
		t.Errorf("loading nothing: %v", err)
	}
	if got := check(w.dir().Complete())(t); len(got) != 0 {
		t.Errorf("loaded %v, but nothing was wanted", got)
	}
}
