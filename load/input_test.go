package load

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/internal/content"
	"sequins/shard"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

func TestInput(t *testing.T) {
	listing := func() source.Listing {
		return source.Listing{Files: []source.File{{Name: "part-0", Size: 1, Mark: "a"}, {Name: "part-1", Size: 2, Mark: "b"}}}
	}
	blocks := func() source.Listing {
		return source.Listing{Files: []source.File{{Name: "part-0.block", Size: 1, Mark: "a"}}, Blocks: "0a"}
	}
	o := Options{Fields: Fields{Key: "k", Value: "v"}}
	tests := []struct {
		name     string
		finished bool
		change   func(o *Options, l *source.Listing)
		same     bool
	}{
		{name: "nothing", change: func(*Options, *source.Listing) {}, same: true},
		{name: "times", change: func(_ *Options, l *source.Listing) { l.Files[0].ModTime = time.Now() }, same: true},
		{name: "auto", change: func(o *Options, _ *source.Listing) { o.Partitioner = "auto" }, same: true},
		{name: "what does not decide on records", same: true, change: func(o *Options, l *source.Listing) {
			o.AllowEmpty, o.RequireSuccess, o.MaxRecordErrors, o.Workers, o.BlockSize, l.Success = true, true, 7, 3, 4096, true
		}},
		{name: "a name", change: func(_ *Options, l *source.Listing) { l.Files[1].Name += "x" }},
		{name: "a size", change: func(_ *Options, l *source.Listing) { l.Files[1].Size++ }},
		{name: "a mark", change: func(_ *Options, l *source.Listing) { l.Files[1].Mark = "c" }},
		{name: "a file less", change: func(_ *Options, l *source.Listing) { l.Files = l.Files[:1] }},
		{name: "key", change: func(o *Options, _ *source.Listing) { o.Fields.Key = "kv" }},
		{name: "value", change: func(o *Options, _ *source.Listing) { o.Fields = Fields{Key: "kv"} }},
		{name: "partition columns", change: func(o *Options, _ *source.Listing) { o.PartitionColumns = true }},
		{name: "partitioner", change: func(o *Options, _ *source.Listing) { o.Partitioner = "string" }},
		{name: "partitions", change: func(o *Options, _ *source.Listing) { o.Partitions = 2 }},
		{name: "finished blocks", finished: true, same: true, change: func(o *Options, l *source.Listing) {
			o.Fields, o.Partitioner, l.Files[0].Size, l.Files[0].Mark = Fields{Key: "other"}, "string", 7, "other"
		}},
		{name: "their manifest", finished: true, change: func(_ *Options, l *source.Listing) { l.Blocks = "0b" }},
		{name: "a file beside them", finished: true, change: func(_ *Options, l *source.Listing) { l.Files = append(l.Files, source.File{Name: "x"}) }},
	}
	for _, tt := range tests {
		before, now, options := listing(), listing(), o
		if tt.finished {
			before, now = blocks(), blocks()
		}
		tt.change(&options, &now)
		was, is := o.Input("v", before), options.Input("v", now)
		if (was == is) != tt.same || !is.Valid() {
			t.Errorf("%s: %v and %v", tt.name, was, is)
		}
	}
	if a, b := o.Input("v", listing()), o.Input("w", listing()); a.Hash != b.Hash || b.Name != "w" {
		t.Errorf("the name is in the hash: %v and %v", a, b)
	}
}

// A load of one input fails where the source lists another one, and that is no fault of the version.
func TestPlanInput(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.Hadoop, 3, keys(100)...), sequencefiles.WriterOptions{})
	w.put("index.spi", []byte("x")) // is no data file only beside logs
	o := Options{Partitioner: "hadoop"}
	listed := o.Input("1", check(source.List(t.Context(), w.src, "db", "1", false))(t))
	l := newLoader(w.src, w.store, nil, o)
	expect.NoError(t, os.Remove(filepath.Join(w.root, "db", "1", "index.spi")))
	_, err := l.PlanInput(t.Context(), "db", listed)
	if !errors.Is(err, source.ErrChanged) || Faulty(err) || !Passing(err) || !strings.Contains(err.Error(), listed.Hash) {
		t.Errorf("another input: %v", err)
	}
	listed = o.Input("1", check(source.List(t.Context(), w.src, "db", "1", false))(t))
	plan := check(l.PlanInput(t.Context(), "db", listed))(t)
	if m := plan.Manifest(); m.Content().Input != listed {
		t.Errorf("%v is planned, and %v was listed", m.Content(), listed)
	}
}

// A plan is repeated on other files than it was made with only if all of its own are there. Then it is of the same content, whatever is
// configured now.
func TestPlanByManifest(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 3, keys(300)...)
	w.write(files, sequencefiles.WriterOptions{})
	m := w.load(Options{Partitioner: "auto"}, 0).Manifest()
	expect.NoError(t, json.Unmarshal(check(json.Marshal(m))(t), &m)) // as from another node
	w.put("part-r-00003", sequenceFile(t, []rec{{key: "new", value: "v"}}, sequencefiles.WriterOptions{}))
	plan := w.load(Options{Partitioner: "spark", Partitions: 7}.PlannedBy(m))
	if plan.Manifest().Content() != m.Content() || len(plan.Files) != 3 {
		t.Errorf("%+v is planned by %+v", plan.Manifest(), m)
	}
	w.compare(plan, model(files, shard.Hadoop, 3), all(plan))

	l := newLoader(w.src, w.store, nil, Options{}.PlannedBy(m))
	gone := filepath.Join(w.root, "db", "1", plan.Files[1].Name)
	expect.NoError(t, os.Rename(gone, filepath.Join(w.root, "aside")))
	_, err := l.Plan(t.Context(), "db", "1")
	if !errors.Is(err, source.ErrChanged) || !strings.Contains(err.Error(), "are gone: "+plan.Files[1].Name+" was deleted") {
		t.Errorf("a file is gone: %v", err)
	}
	if err := l.Verify(t.Context(), plan); !errors.Is(err, source.ErrChanged) {
		t.Errorf("a file is gone while it is loaded: %v", err)
	}
	expect.NoError(t, os.Rename(filepath.Join(w.root, "aside"), gone))
	w.put(plan.Files[1].Name, sequenceFile(t, []rec{{key: "other", value: "v"}}, sequencefiles.WriterOptions{}))
	if _, err = l.Plan(t.Context(), "db", "1"); !errors.Is(err, source.ErrChanged) || !strings.Contains(err.Error(), "was replaced") {
		t.Errorf("a file is replaced: %v", err)
	}
}

// division returns a plan of files with the numbers 0 to 3.
func division(by string, partitions int, aligned bool) store.Manifest {
	m := store.Manifest{Version: "1", Input: strings.Repeat("a", content.Digits), Format: FormatSequenceFile,
		Partitions: partitions, Partitioner: by, Aligned: aligned}
	for _, name := range []string{"part-00000", "part-00001", "part-00002", "part-00003"} {
		m.Files = append(m.Files, store.ManifestFile{Name: name})
	}
	return m
}

func TestLater(t *testing.T) {
	order := []store.Manifest{ // of detection
		division("string", 4, true), division("hadoop", 4, true), division("spark", 4, true), division("hive", 4, true),
		division("a-partitioner-of-the-future", 4, true),
		division("string", 12, true), division("hadoop", 8, true), division("hadoop", 16, true), division("spark", 6, true),
		division("hadoop", 4, false), division("string", 4, false), division("string", 7, false),
	}
	for i, a := range order {
		for j, b := range order {
			if got := Later(a, b); got != (i > j) {
				t.Errorf("place %d, %s of %d, is later than place %d, %s of %d: %v", i, a.Partitioner, a.Partitions, j, b.Partitioner, b.Partitions, got)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10 { // whoever compares, and in whatever order
		shuffled := slices.Clone(order)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		slices.SortFunc(shuffled, func(a, b store.Manifest) int {
			return cmp.Or(boolean(Later(a, b)), -boolean(Later(b, a)))
		})
		for i := range order {
			if shuffled[i].Content() != order[i].Content() {
				t.Fatalf("place %d: %s of %d", i, shuffled[i].Partitioner, shuffled[i].Partitions)
			}
		}
	}
	one := division("string", 1, true)
	one.Files = one.Files[:1]
	other := one
	other.Format = FormatAvro
	if Later(one, one) || Later(one, other) == Later(other, one) {
		t.Error("plans of other formats have no order")
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Plans that are made one after another, because records refute them, are later and later.
func TestRefutedIsEarlier(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	rounds := 0
	for range 30 {
		w := newWorld(t)
		_, files := randomCut(r)
		w.write(files, sequencefiles.WriterOptions{})
		l := newLoader(w.src, w.store, nil, Options{AllowEmpty: true})
		plan, err := l.Plan(t.Context(), "db", "1")
		if err != nil {
			continue
		}
		var refuted []shard.Partitioner
		for plan.Aligned && plan.Partitions > 1 {
			refuted = append(refuted, plan.Partitioner)
			next := check(l.Plan(t.Context(), "db", "1", refuted...))(t)
			if a, b := plan.Manifest(), next.Manifest(); !Later(b, a) || Later(a, b) {
				t.Fatalf("%s of %d, aligned %v, is not later than %s of %d", b.Partitioner, b.Partitions, b.Aligned, a.Partitioner, a.Partitions)
			}
			plan = next
			rounds++
		}
	}
	if rounds < 25 {
		t.Errorf("%d plans were refuted: the test has lost its balance", rounds)
	}
}
