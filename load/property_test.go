package load

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/shard"
	"sequins/test/sequencefiles"
)

// version is a random version: what is in its files, and how they came about.
type version struct {
	seed    uint64
	files   []data
	sparkey bool
	by      shard.Partitioner // what the files are cut by
	isCut   bool
	opts    sequencefiles.WriterOptions
}

// randomVersion makes a version of few different keys, so that there are many
// of each, or of many keys; sorted or not; cut by a function or by none.
func randomVersion(seed uint64) version {
	rng := rand.New(rand.NewPCG(seed, 99))
	v := version{seed: seed, sparkey: rng.IntN(3) == 0, isCut: rng.IntN(3) > 0, by: shard.Partitioner(rng.IntN(4))}
	v.opts.Compression = []sequencefiles.Compression{sequencefiles.None, sequencefiles.Record, sequencefiles.Block}[rng.IntN(3)]
	v.files = make([]data, 1+rng.IntN(20))
	for i := range v.files {
		v.files[i].name = fmt.Sprintf("part-%05d", i)
		if v.sparkey {
			v.files[i].name += ".spl"
		}
	}
	different := []int{3, 50, 10_000}[rng.IntN(3)]
	for range rng.IntN(3000) {
		r := rec{key: randomKey(rng, different), value: strings.Repeat("v", rng.IntN(40)) + fmt.Sprint(rng.IntN(1000))}
		if v.sparkey && rng.IntN(5) == 0 {
			r.value, r.deleted = "", true
		}
		i := rng.IntN(len(v.files))
		if v.isCut {
			i = v.by.Partition([]byte(r.key), len(v.files))
		}
		v.files[i].records = append(v.files[i].records, r)
	}
	v.shape(rng)
	return v
}

func randomKey(rng *rand.Rand, different int) string {
	n := rng.IntN(different)
	switch n % 4 {
	case 0:
		return fmt.Sprintf("user:%08d", n)
	case 1:
		return strings.Repeat("\x00", n%5) // short ones, among them the empty one
	case 2:
		return fmt.Sprintf("ключ%d\xff\xed\xa0\x80", n)
	}
	return strings.Repeat(fmt.Sprint(n), 1+n%50)
}

// shape sorts all files, some, or none, and puts the keys of Sparkey's files
// where a later one deletes them.
func (v *version) shape(rng *rand.Rand) {
	some := rng.IntN(3)
	for i := range v.files {
		if some == 0 || some == 1 && rng.IntN(2) == 0 {
			slices.SortStableFunc(v.files[i].records, func(a, b rec) int { return cmp.Compare(a.key, b.key) })
		}
	}
	if v.sparkey && rng.IntN(2) == 0 { // two logs a partition
		for i := range v.files {
			v.files[i].name = fmt.Sprintf("part-%05d-%d.spl", i/2, i%2)
		}
		if v.isCut {
			v.recut((len(v.files) + 1) / 2)
		}
	}
	for i := range v.files {
		v.files[i].possible()
	}
}

// possible leaves out deletes that a Sparkey log cannot have: those of keys
// longer than every key put before.
func (d *data) possible() {
	longest := 0
	d.records = slices.DeleteFunc(d.records, func(r rec) bool {
		if r.deleted {
			return len(r.key) > longest
		}
		longest = max(longest, len(r.key))
		return false
	})
}

// recut deals the records out again to n partitions of two files each.
func (v *version) recut(n int) {
	var all []rec
	for i := range v.files {
		all = append(all, v.files[i].records...)
		v.files[i].records = nil
	}
	for j, r := range all {
		i := 2 * v.by.Partition([]byte(r.key), n)
		if i+1 < len(v.files) && j > len(all)/2 {
			i++
		}
		v.files[i].records = append(v.files[i].records, r)
	}
}

// Whatever the version, and whatever the number of workers and the memory, the
// blocks hold what the model says, and are the same bytes.
func TestRandomVersions(t *testing.T) {
	const versions = 25
	aligned := 0
	for seed := range uint64(versions) {
		v := randomVersion(seed)
		w := newWorld(t)
		w.write(v.files, v.opts)
		var first map[int]string
		for i, opts := range []Options{
			{Workers: 1},
			{Workers: 3, Memory: 1},
			{Workers: 2, Memory: 48 << 20, Compression: blocks.FSST},
		} {
			opts.Compression = blocks.FSST
			w.newStore()
			plan := w.load(opts)
			if i == 0 && plan.Aligned {
				aligned++
			}
			if v.isCut && !plan.Aligned {
				t.Errorf("version %d is cut by %v, but not found to be", seed, v.by)
			}
			w.compare(plan, model(v.files, plan.Partitioner, plan.Partitions), all(plan))
			got := w.bytesOf(all(plan))
			if first == nil {
				first = got
			} else if !maps.Equal(first, got) {
				t.Fatalf("version %d: blocks differ with %+v", seed, opts)
			}
		}
		if t.Failed() {
			t.Fatalf("version %d", seed)
		}
	}
	if aligned < versions/4 || aligned > versions*9/10 {
		t.Errorf("%d of %d versions are aligned: the test has lost its balance", aligned, versions)
	}
}

// Nodes that want different partitions get the same blocks of what they share.
func TestSubsetsAgree(t *testing.T) {
	for seed := range uint64(8) {
		v := randomVersion(1000 + seed)
		w := newWorld(t)
		w.write(v.files, v.opts)
		plan := w.load(Options{})
		whole := w.bytesOf(all(plan))
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 3 {
			w.newStore()
			var want []int
			for p := range plan.Partitions {
				if rng.IntN(2) == 0 {
					want = append(want, p)
				}
			}
			if want == nil {
				want = []int{0}
			}
			for p, got := range w.loadBytes(Options{Workers: 1 + rng.IntN(3)}, want) {
				if got != whole[p] {
					t.Errorf("version %d: the block of partition %d of %v differs", v.seed, p, want)
				}
			}
		}
	}
}

func (w *world) loadBytes(opts Options, want []int) map[int]string {
	w.t.Helper()
	w.load(opts, want...)
	return w.bytesOf(want)
}

// Values are large, and memory is small: sorters have to write runs.
func TestMemoryIsTight(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(7, 7))
	files := make([]data, 4)
	for i := range files {
		files[i].name = fmt.Sprint("file", i)
		for range 5000 {
			files[i].records = append(files[i].records, rec{
				key:   fmt.Sprint("key", rng.IntN(8000)),
				value: strings.Repeat(fmt.Sprint(rng.IntN(10)), rng.IntN(2000)),
			})
		}
	}
	w.write(files, sequencefiles.WriterOptions{})
	want := model(files, shard.String, 4)
	for _, memory := range []int64{1, 1 << 20, 40 << 20} {
		w.newStore()
		plan := w.load(Options{Memory: memory})
		w.compare(plan, want, all(plan))
	}
}

// An empty key is the first of its block. The bytes of the block do not depend on how many workers loaded it, nor on
// how it was sorted.
func TestEmptyKeyWithAnyWorkers(t *testing.T) {
	for _, n := range []int{1, 3} { // one file is aligned
		files := make([]data, n)
		for i := range files {
			files[i].name = fmt.Sprintf("part-%05d", i)
			for j := range 100 {
				files[i].records = append(files[i].records, rec{key: fmt.Sprintf("key-%05d", j*n+i), value: strings.Repeat("v", 20_000)})
			}
			files[i].records = append(files[i].records, rec{}) // not in order, so that it is sorted
		}
		w := newWorld(t)
		w.write(files, sequencefiles.WriterOptions{})
		var first map[int]string
		for _, workers := range []int{1, 2, 3, 8} {
			for _, memory := range []int64{8 << 20, 1} { // without runs and with them
				w.newStore()
				got := w.bytesOf(all(w.load(Options{Workers: workers, Memory: memory})))
				if first == nil {
					first = got
				}
				if !maps.Equal(first, got) {
					t.Fatalf("%d files: blocks differ with %d workers and memory %d", n, workers, memory)
				}
			}
		}
	}
}
