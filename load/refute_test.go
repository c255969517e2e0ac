package load

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// loadRefuting does what a node does: it plans and loads, and plans again
// without the partitioners that a load refutes. It returns those in the order in
// which they were refuted.
func (w *world) loadRefuting(opts Options, want ...int) (*Plan, []shard.Partitioner) {
	w.t.Helper()
	l := newLoader(w.src, w.store, nil, opts)
	var refuted []shard.Partitioner
	for range len(shard.Partitioners()) + 1 {
		plan := check(l.Plan(w.t.Context(), "db", "1", refuted...))(w.t)
		these := want
		if these == nil {
			these = all(plan)
		}
		err := l.Load(w.t.Context(), plan, these)
		w.clean()
		if err == nil {
			return plan, refuted
		}
		p, ok := Refutes(err)
		if !ok || !errors.Is(err, ErrRefuted) {
			w.t.Fatal(err)
		}
		if p != plan.Partitioner || slices.Contains(refuted, p) {
			w.t.Fatalf("%v is refuted after %v", p, refuted)
		}
		refuted = append(refuted, p)
	}
	w.t.Fatalf("refuted more partitioners than there are: %v", refuted)
	return nil, nil
}

// prefixes are keys of jobs that number what they write.
var prefixes = []string{"user:%08d", "id%08d", "%d", "k-%05d", "2026-01-%07d", "%x", "customer/%d/profile", "%012d"}

// sequential returns the keys of a job in order.
func sequential(prefix string, n, step int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(prefix, i*step))
	}
	slices.Sort(all)
	return all
}

// onStrings are the partitioners of files named part-r-00000 with keys of strings.
var onStrings = []shard.Partitioner{shard.String, shard.Hadoop, shard.Spark, shard.Cascading, shard.Murmur3}

// agrees reports whether two partitioners put all keys in the same places.
func agrees(a, b shard.Partitioner, n int, keys []string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return a.Partition([]byte(k), n) != b.Partition([]byte(k), n) })
}

// Jobs with sorted sequential keys load by the function that they were cut with,
// or by one that puts each of their keys in the same place.
func TestSequentialKeys(t *testing.T) {
	for i, prefix := range prefixes {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			for n := 2 + i%3; n <= 24; n += 9 {
				keys := sequential(prefix, 800, 1+1499*((i+n)%2))
				for _, by := range onStrings {
					w := newWorld(t)
					files := cut(by, n, keys...)
					w.write(files, sequencefiles.WriterOptions{})
					plan, _ := w.loadRefuting(Options{Workers: 1})
					if !plan.Aligned || !agrees(plan.Partitioner, by, n, keys) {
						t.Fatalf("by %v over %d: loaded by %v, aligned %v", by, n, plan.Partitioner, plan.Aligned)
					}
					w.compare(plan, model(files, by, n), all(plan))
				}
			}
		})
	}
}

// One key in a wrong file, behind what the sample reads, and the version is
// loaded by string from all files.
func TestOddKey(t *testing.T) {
	for i, prefix := range prefixes {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			for j, by := range onStrings {
				n := []int{2, 7, 24}[(i+j)%3] // each number with each prefix and with each partitioner
				w := newWorld(t)
				files := cut(by, n, sequential(prefix, 800, 1500)...)
				spoil(files, i%n)
				w.write(files, sequencefiles.WriterOptions{})
				plan, _ := w.loadRefuting(Options{Workers: 1})
				if plan.Aligned || plan.Partitioner != shard.String {
					t.Fatalf("by %v over %d: loaded by %v, aligned %v", by, n, plan.Partitioner, plan.Aligned)
				}
				w.compare(plan, model(files, shard.String, n), all(plan))
			}
		})
	}
}

// spoil appends a record to file i that no partitioner puts there under which
// all the others are in place.
func spoil(files []data, i int) {
	fits := shard.NewDetector(len(files), 1, 0, shard.PartNames)
	for j, f := range files {
		for _, r := range f.records {
			fits.Add(j, []byte(r.key))
		}
	}
	for j := range 10_000 {
		key := fmt.Sprintf("~odd key %d", j) // behind all others in order
		if !slices.ContainsFunc(fits.Candidates(), func(c shard.Cut) bool { return c.By.Partition([]byte(key), len(files)) == i }) {
			files[i].records = append(files[i].records, rec{key: key, value: "odd"})
			return
		}
	}
	panic("no key is odd")
}

// ambiguous makes files cut by spark that fit string as well, but for one key of
// file 1, at a place that the sample leaves out if there are enough records.
func ambiguous(n, records int) []data {
	files := cut(shard.String, n)
	for i, left := 0, n*records; left > 0 && i < 20*n*records; i++ {
		key := fmt.Sprintf("%08d", i)
		p := shard.Spark.Partition([]byte(key), n)
		if f := &files[p]; len(f.records) < records && shard.String.Partition([]byte(key), n) == p {
			f.records = append(f.records, rec{key: key, value: "value of " + key})
			left--
		}
	}
	for i := 0; ; i++ {
		key := fmt.Sprintf("~%d", i)
		if shard.Spark.Partition([]byte(key), n) == 1 && shard.String.Partition([]byte(key), n) != 1 {
			files[1].records = slices.Insert(files[1].records, records/4*3, rec{key: key, value: "odd"})
			return files
		}
	}
}

// ambiguousFiles is a version of more records than a sample reads, for tests that do not change it.
var ambiguousFiles = sync.OnceValue(func() []data { return ambiguous(3, 48_000) })

// What one plan has made is never taken for another's, though all files are the
// same; and the plan that holds is found again after a restart.
func TestRefutedPlan(t *testing.T) {
	w := newWorld(t)
	files := ambiguousFiles()
	w.write(files, sequencefiles.WriterOptions{})
	l := newLoader(w.src, w.store, nil, Options{Workers: 1})
	first := check(l.Plan(t.Context(), "db", "1"))(t)
	if first.Partitioner != shard.String || !first.Aligned || !first.Auto {
		t.Fatalf("%v, aligned %v: the sample tells already", first.Partitioner, first.Aligned)
	}
	if err := l.Load(t.Context(), first, []int{0}); err != nil { // fits, and is published
		t.Fatal(err)
	}
	err := l.Load(t.Context(), first, all(first))
	if p, ok := Refutes(err); !ok || p != shard.String || Outcome(err) != "refuted" {
		t.Fatalf("%v: %v, %v", err, p, ok)
	}

	second := check(l.Plan(t.Context(), "db", "1", shard.String))(t)
	if second.Partitioner != shard.Spark || !second.Aligned || second.Manifest().Content() == first.Manifest().Content() {
		t.Fatalf("%v, aligned %v", second.Partitioner, second.Aligned)
	}
	expect.NoError(t, l.Load(t.Context(), second, []int{1, 2}))
	w.compare(second, model(files, shard.Spark, 3), []int{1, 2}) // and no block of partition 0

	again := check(newLoader(w.src, w.store, nil, Options{Workers: 2}.PlannedBy(newest(t, w.store).Manifest())).Plan(t.Context(), "db", "1"))(t)
	ignored := cmpopts.IgnoreFields(Plan{}, "Auto", "classes", "sampled", "refuted")
	if diff := cmp.Diff(second, again, cmp.AllowUnexported(Plan{}), ignored); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	last := check(l.Plan(t.Context(), "db", "1", shard.String, shard.Spark))(t)
	if last.Partitioner != shard.String || last.Aligned || last.Manifest().Content() == first.Manifest().Content() {
		t.Errorf("with both refuted: %v, aligned %v", last.Partitioner, last.Aligned)
	}
	for i, plans := range [][2]*Plan{{second, first}, {last, second}, {last, first}} {
		a, b := plans[0].Manifest(), plans[1].Manifest()
		if !Later(a, b) || Later(b, a) || Later(a, a) {
			t.Errorf("case %d: the plan that was made later is not later", i)
		}
	}
}

// Three nodes read a third of the files each, and tell each other only what is
// refuted. They end with the same plan, and each key is where it says.
func TestNodesAgree(t *testing.T) {
	spoiled := slices.Clone(ambiguousFiles())
	spoiled[2].records = slices.Clone(spoiled[2].records)
	spoil(spoiled, 2)
	for name, test := range map[string]struct {
		files   []data
		want    shard.Partitioner
		aligned bool
	}{
		"the next function":         {ambiguousFiles(), shard.Spark, true},
		"none":                      {spoiled, shard.String, false},
		"one odd key":               {func() []data { f := cut(shard.Hadoop, 3, sequential("id%08d", 5000, 1)...); spoil(f, 1); return f }(), shard.String, false},
		"the first, and no trouble": {cut(shard.String, 3, sequential("%d", 5000, 1)...), shard.String, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(test.files, sequencefiles.WriterOptions{})
			nodes := []*world{w, {t: t, src: w.src}, {t: t, src: w.src}}
			published := map[shard.Partitioner]bool{}
			plans := make([]*Plan, len(nodes))
			for settled := false; !settled; {
				settled = true
				for i, node := range nodes {
					if node.store == nil {
						node.newStore()
					}
					l := newLoader(node.src, node.store, nil, Options{Workers: 1})
					plan := check(l.Plan(t.Context(), "db", "1", slices.Collect(maps.Keys(published))...))(t)
					settled = settled && plans[i] != nil && plan.Manifest().Content() == plans[i].Manifest().Content()
					plans[i] = plan
					err := l.Load(t.Context(), plan, []int{i})
					if p, ok := Refutes(err); ok {
						published[p], settled = true, false
					} else if err != nil {
						t.Fatal(err)
					}
				}
			}
			want := model(test.files, test.want, 3)
			for i, node := range nodes {
				if plans[i].Partitioner != test.want || plans[i].Aligned != test.aligned {
					t.Errorf("node %d: %v, aligned %v", i, plans[i].Partitioner, plans[i].Aligned)
				}
				node.compare(plans[i], want, []int{i})
			}
		})
	}
}

// Whatever the keys, the function and the spoiled files: the version loads, and
// each key is in the block of its partition.
func TestRandomKeysLoad(t *testing.T) {
	refuted := 0
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 13))
		n := 1 + rng.IntN(12)
		files := cut(onStrings[rng.IntN(len(onStrings))], n, randomKeys(rng)...)
		for range rng.IntN(3) * rng.IntN(2) {
			from, to := rng.IntN(n), rng.IntN(n) // one record moves
			if f := &files[from]; len(f.records) > 0 && from != to {
				files[to].records = append(files[to].records, f.records[len(f.records)-1])
				f.records = f.records[:len(f.records)-1]
			}
		}
		w := newWorld(t)
		w.write(files, sequencefiles.WriterOptions{Compression: sequencefiles.Compression(rng.IntN(3)), BlockSize: 1000})
		plan, without := w.loadRefuting(Options{Workers: 1 + rng.IntN(2)})
		refuted += len(without)
		w.compare(plan, model(files, plan.Partitioner, n), all(plan))
	}
	if refuted < 5 {
		t.Errorf("%d partitioners were refuted: the test has lost its balance", refuted)
	}
}

// randomKeys returns distinct keys that are sorted numbers, text or bytes.
func randomKeys(rng *rand.Rand) []string {
	set := map[string]bool{}
	prefix, kind := prefixes[rng.IntN(len(prefixes))], rng.IntN(3)
	for range rng.IntN(2000) {
		switch kind {
		case 0:
			set[fmt.Sprintf(prefix, rng.IntN(1_000_000))] = true
		case 1:
			set[strings.Repeat(string(rune(rng.IntN(0x30000))), 1+rng.IntN(3))+strconv.Itoa(rng.IntN(100))] = true
		default:
			set[string(binary.BigEndian.AppendUint64(nil, rng.Uint64())[:1+rng.IntN(8)])] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// A partitioner that is configured is not refuted: the version fails.
func TestConfiguredIsNotRefuted(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.String, 3, keys(100)...), sequencefiles.WriterOptions{})
	l := newLoader(w.src, w.store, nil, Options{Partitioner: "hadoop"})
	plan := check(l.Plan(t.Context(), "db", "1", shard.Hadoop))(t)
	err := l.Load(t.Context(), plan, all(plan))
	var wrong *PartitionError
	if !errors.As(err, &wrong) || wrong.Auto || errors.Is(err, ErrRefuted) || Outcome(err) != "partitioner" {
		t.Errorf("%v: %q", err, Outcome(err))
	}
	if p, ok := Refutes(err); ok {
		t.Errorf("%v is refuted by %v", p, err)
	}
}

// The error passes between processes.
func TestPartitionErrorAsJSON(t *testing.T) {
	want := &PartitionError{File: "f", Offset: 7, Key: []byte("\xff\x00"), Clipped: true, Partitioner: shard.Spark, Want: 1, Got: 2, Auto: true}
	var got *PartitionError
	text := check(json.Marshal(want))(t)
	expect.NoError(t, json.Unmarshal(text, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", text, diff)
	}
	if p, ok := Refutes(fmt.Errorf("loading: %w", got)); !ok || p != shard.Spark {
		t.Errorf("%v, %v", p, ok)
	}
}
