package load

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// namings are ways in which programs name file k of a partition.
var namings = []func(partition, k int) string{
	func(p, k int) string { return fmt.Sprintf("part-%05d-%d", p, k) },
	func(p, k int) string { return fmt.Sprintf("%06d_%d", p, k) },
	func(p, k int) string { return fmt.Sprintf("topic+%d+%010d.avro", p, k) },
	func(p, k int) string { return fmt.Sprintf("f%c%d", 'a'+p, k) },
}

// randomCut returns the files of a version that is cut by a function, or by none, with or without gaps.
func randomCut(r *rand.Rand) (by shard.Partitioner, all []data) {
	n := 1 + r.IntN(12)
	functions := shard.Partitioners()
	by = functions[r.IntN(len(functions))]
	name, random, several := namings[r.IntN(len(namings))], r.IntN(4) == 0, 1
	if r.IntN(3) == 0 {
		several = 3
	}
	files := map[string]*data{}
	file := func(name string) *data {
		if files[name] == nil {
			files[name] = &data{name: name}
		}
		return files[name]
	}
	for p := range n * r.IntN(2) {
		file(name(p, 0)) // of every partition, maybe without records
	}
	for i := range []int{1, 5, 30, 300}[r.IntN(4)] {
		key := fmt.Sprint(i * 7919) // for functions on numbers, too
		p := by.Partition([]byte(key), n)
		if random {
			p = r.IntN(n)
		}
		f := file(name(p, r.IntN(several)))
		f.records = append(f.records, rec{key: key, value: "v"})
	}
	for _, f := range files {
		all = append(all, *f)
	}
	return by, all
}

// A version that is planned again by the settings of its plan gets that plan, whatever its files are named and how they are cut.
func TestPlannedAgain(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 150 {
		w := newWorld(t)
		by, files := randomCut(r)
		w.write(files, sequencefiles.WriterOptions{})
		o := Options{AllowEmpty: true}
		switch r.IntN(3) {
		case 0:
			o.Partitioner = by.String()
		case 1:
			o.Partitioner = shard.Partitioners()[r.IntN(len(shard.Partitioners()))].String()
		}
		if r.IntN(3) == 0 {
			o.Partitions = 1 + r.IntN(12)
		}
		plan, err := w.plan(o)
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		m := plan.Manifest()
		again, err := w.plan(Options{AllowEmpty: true}.PlannedBy(m))
		if err != nil {
			t.Fatalf("seed %d, round %d: again: %v", seed, round, err)
		}
		if now := again.Manifest(); m.Content() != now.Content() {
			t.Errorf("seed %d, round %d: %+v: planned by %s into %d, aligned %v, and again by %s into %d, aligned %v", seed, round, o, m.Partitioner, m.Partitions, m.Aligned,
				now.Partitioner, now.Partitions, now.Aligned)
		}
		l := &Loader{}
		made, _ := l.MadeFrom(plan)
		if repeated, _ := l.MadeFrom(again); made != repeated {
			t.Errorf("seed %d, round %d: blocks are made from %q, and of the same plan from %q", seed, round, made, repeated)
		}
	}
}

// Several files of one number, whose records are all of the key "A", whose hash is the number: nothing tells the number of partitions.
func TestOnePartitionOfMany(t *testing.T) {
	w := newWorld(t)
	var files []data
	for i := range 2 {
		f := data{name: fmt.Sprintf("part-00065-%c", 'a'+i)}
		for j := range 30 {
			f.records = append(f.records, rec{key: "A", value: fmt.Sprint(j)})
		}
		files = append(files, f)
	}
	w.write(files, sequencefiles.WriterOptions{})
	plan, err := w.plan(Options{Partitioner: "auto"})
	expect.NoError(t, err)
	if plan.Partitions != 2 || plan.Aligned {
		t.Errorf("%d partitions by %v, aligned %v", plan.Partitions, plan.Partitioner, plan.Aligned)
	}
}

// Sampling ends when nothing fits any more, whatever the files are named.
func TestSamplingEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		name string
		o    Options
	}{
		"numbered":        {"part-%05d", Options{}},
		"without numbers": {"x%05d", Options{}},
		"partitions":      {"part-%05d", Options{Partitions: 64}},
		"few partitions":  {"part-%05d", Options{Partitions: 7}},
	} {
		w := newWorld(t)
		var files []data
		for i := range 64 {
			f := data{name: fmt.Sprintf(tt.name, i)}
			for j := range 2000 {
				f.records = append(f.records, rec{key: fmt.Sprintf("key-%07d", 2000*i+j), value: strings.Repeat("v", 100)})
			}
			files = append(files, f)
		}
		w.write(files, sequencefiles.WriterOptions{})
		var p Progress
		plan, err := newLoader(w.src, w.store, &p, tt.o).Plan(t.Context(), "db", "1")
		expect.NoError(t, err)
		if records := p.Snapshot().Scanned; plan.Aligned || records > 2*sampleFiles*sampleFirst {
			t.Errorf("%s: aligned %v, %d records were read", name, plan.Aligned, records)
		}
	}
}

// Buckets of Hive whose keys are ASCII as far as they are sampled. A record of another key refutes "string", and the next plan is by "hive".
func TestHiveBehindString(t *testing.T) {
	w := newWorld(t)
	const n = 5
	var keys []string
	for i := range 200_000 {
		keys = append(keys, fmt.Sprintf("user:%08d", i*7919))
	}
	files := cut(shard.Hive, n, keys...)
	late := "ключ-1"
	f := &files[shard.Hive.Partition([]byte(late), n)]
	at := len(f.records) * 7 / 10 // where nothing is sampled
	f.records = append(f.records[:at:at], append([]rec{{key: late}}, f.records[at:]...)...)
	for i := range files {
		files[i].name = fmt.Sprintf("%06d_0", i)
	}
	w.write(files, sequencefiles.WriterOptions{})
	l := newLoader(w.src, w.store, nil, Options{Partitioner: "auto"})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	if plan.Partitioner != shard.String || !plan.Aligned {
		t.Fatalf("the first plan: %v, aligned %v", plan.Partitioner, plan.Aligned)
	}
	wrong, refuted := Refutes(l.Load(t.Context(), plan, all(plan)))
	if !refuted || wrong != shard.String {
		t.Fatalf("%v is refuted: %v", wrong, refuted)
	}
	plan = check(l.Plan(t.Context(), "db", "1", wrong))(t)
	if plan.Partitioner != shard.Hive || !plan.Aligned {
		t.Errorf("the second plan: %v, aligned %v", plan.Partitioner, plan.Aligned)
	}
}

// Sizes that a source lists can be anything.
func TestSplitOfAnySizes(t *testing.T) {
	for _, size := range []int64{1 << 62, -1 << 62, 0} {
		p := &Plan{}
		for range 5 {
			p.Files = append(p.Files, source.File{Size: size})
		}
		files := 0
		for _, lane := range p.split(3) {
			files += len(lane)
		}
		if files != 5 {
			t.Errorf("size %d: %d files", size, files)
		}
	}
}
