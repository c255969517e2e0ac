package extsort

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sequins/internal/fsys"
	"sequins/test/expect"
	"sequins/test/faultfs"
)

// smallSorter is a sorter with so little memory that few records make it write runs and merge them
// more than once.
type smallSorter struct{ memory, frame, maxKey, maxRuns int }

func (c smallSorter) open(t testing.TB, f fsys.FS) *Sorter {
	t.Helper()
	expect.NoError(t, f.MkdirAll("/sort"))
	s := New(Options{Dir: "/sort", FS: f})
	s.memory, s.frameSize, s.maxRuns = c.memory, c.frame, c.maxRuns
	s.minBuffer = maxRecordHead + c.maxKey + c.frame
	return s
}

var smallSorters = map[string]smallSorter{
	"in memory":         {memory: 1 << 20, frame: 64, maxKey: 40, maxRuns: 4},
	"few runs":          {memory: 20_000, frame: 1000, maxKey: 40, maxRuns: 100},
	"many runs":         {memory: 3000, frame: 100, maxKey: 40, maxRuns: 100},
	"two at once":       {memory: 1000, frame: 100, maxKey: 40, maxRuns: 2},
	"three, tiny":       {memory: 700, frame: 50, maxKey: 40, maxRuns: 3},
	"frames below keys": {memory: 2000, frame: 10, maxKey: 40, maxRuns: 5},
}

// model is what a sorter is to yield.
type model map[string]string

func (m model) add(key, value string, deleted bool) {
	if deleted {
		delete(m, key)
	} else {
		m[key] = value
	}
}

// sortedList merges a sorter into a list of "key=value", and checks the order.
func sortedList(t testing.TB, s *Sorter) []string {
	t.Helper()
	list, last := []string{}, ""
	err := s.Merge(context.Background(), func(key, value []byte) error {
		if len(list) > 0 && string(key) <= last {
			t.Errorf("%q comes after %q", key, last)
		}
		last = string(key)
		list = append(list, string(key)+"="+string(value))
		return nil
	})
	expect.NoError(t, err)
	return list
}

func (m model) list() []string {
	list := []string{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, k+"="+m[k])
	}
	return list
}

// randomRecord makes keys that meet often, and values of which some are longer than the memory.
func randomRecord(r *rand.Rand) (key, value string, deleted bool) {
	switch r.IntN(3) {
	case 0:
		key = fmt.Sprintf("user:%06d", r.IntN(500))
	case 1:
		key = strings.Repeat("k", r.IntN(40))
	default:
		key = randomBits(r, r.IntN(12))
	}
	length := r.IntN(60)
	switch r.IntN(100) {
	case 0:
		length = r.IntN(5000)
	case 1, 2, 3:
		length = r.IntN(300)
	}
	value = strings.Repeat(string(rune('a'+r.IntN(26))), length)
	return key, value, r.IntN(5) == 0
}

func TestSorterModel(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, config := range smallSorters {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(30) {
				r := rand.New(rand.NewPCG(seed, 3))
				f := faultfs.New()
				s, want := config.open(t, f), model{}
				for range r.IntN(3000) {
					k, v, deleted := randomRecord(r)
					expect.NoError(t, s.Add([]byte(k), []byte(v), deleted))
					want.add(k, v, deleted)
				}
				if want, got := want.list(), sortedList(t, s); !slices.Equal(want, got) {
					t.Fatalf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got))
				}
				expect.NoError(t, s.Close())
				checkNoRuns(t, f)
			}
		})
	}
}

// TestMergeModel: of several sorters, the later are newer, and what they delete is in none.
func TestMergeModel(t *testing.T) {
	configs := slices.Sorted(maps.Keys(smallSorters))
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		f := faultfs.New()
		var sorters []*Sorter
		want, got := model{}, []string{}
		for range 1 + r.IntN(5) {
			s := smallSorters[configs[r.IntN(len(configs))]].open(t, f)
			for range r.IntN(1000) {
				k, v, deleted := randomRecord(r)
				expect.NoError(t, s.Add([]byte(k), []byte(v), deleted))
				want.add(k, v, deleted)
			}
			expect.NoError(t, s.Finish(t.Context()))
			sorters = append(sorters, s)
		}
		expect.NoError(t, Merge(t.Context(), sorters, func(key, value []byte) error {
			got = append(got, string(key)+"="+string(value))
			return nil
		}))
		if want := want.list(); !slices.Equal(want, got) {
			t.Fatalf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got))
		}
		for _, s := range sorters {
			expect.NoError(t, s.Close())
		}
		checkNoRuns(t, f)
	}
}

// checkNoRuns fails the test if the sorter has left files, open or not.
func checkNoRuns(t *testing.T, f *faultfs.FS) {
	t.Helper()
	if files := list(t, f, "/sort"); len(files) > 0 {
		t.Errorf("left over: %v", files)
	}
	if n := f.OpenFiles(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

// TestSorterDeletions: a deletion hides older records in whatever run they are, and no newer one.
func TestSorterDeletions(t *testing.T) {
	for name, config := range smallSorters {
		f := faultfs.New()
		s := config.open(t, f)
		filler := func() {
			for i := range 200 {
				expect.NoError(t, s.Add(fmt.Appendf(nil, "m%04d", i), []byte("0123456789"), false))
			}
		}
		expect.NoError(t, s.Add([]byte("a"), []byte("old"), false))
		expect.NoError(t, s.Add([]byte("z"), []byte("old"), false))
		filler()
		expect.NoError(t, s.Add([]byte("a"), []byte("ignored"), true))
		expect.NoError(t, s.Add([]byte("z"), nil, true))
		expect.NoError(t, s.Add([]byte("never there"), nil, true))
		filler()
		expect.NoError(t, s.Add([]byte("z"), []byte("new"), false))
		filler()
		got := sortedList(t, s)
		if len(got) != 201 || got[200] != "z=new" || got[0] != "m0000=0123456789" {
			t.Errorf("%s: %d records: %.80q", name, len(got), got)
		}
		expect.NoError(t, s.Close())
	}
}

func TestSorterEmpty(t *testing.T) {
	s := New(Options{Dir: "/does/not/exist"})
	if got := sortedList(t, s); len(got) != 0 {
		t.Errorf("an empty sorter yields %q", got)
	}
	expect.NoError(t, s.Close())

	s = New(Options{Dir: "/does/not/exist"})
	expect.NoError(t, s.Add(nil, nil, false))
	expect.NoError(t, s.Add(nil, nil, true))
	expect.NoError(t, s.Add([]byte("\x00"), nil, false))
	if diff := cmp.Diff([]string{"\x00="}, sortedList(t, s)); diff != "" {
		t.Error(diff)
	}
	expect.NoError(t, s.Close())
}

// TestSorterWritesNothing: what fits into memory does not touch the disk.
func TestSorterWritesNothing(t *testing.T) {
	f := faultfs.New()
	s := New(Options{Memory: 4 << 20, Dir: "/", FS: f})
	for i := range 20_000 { // of about 140 bytes, in 4 MiB less what is for the writer
		expect.NoError(t, s.Add(fmt.Appendf(nil, "%016d", i*7919%20_000), make([]byte, 100), false))
	}
	if got := sortedList(t, s); len(got) != 20_000 {
		t.Errorf("%d records", len(got))
	}
	expect.NoError(t, s.Close())
	if n := f.Calls(); n != 0 {
		t.Errorf("%d system calls", n)
	}
}

func TestSorterClosedTwice(t *testing.T) {
	s := smallSorters["many runs"].open(t, faultfs.New())
	expect.NoError(t, s.Add([]byte("k"), []byte("v"), false))
	sortedList(t, s)
	expect.NoError(t, s.Close())
	expect.NoError(t, s.Close())
}

func TestSorterLongestKey(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	key := bytes.Repeat([]byte("k"), MaxKey)
	expect.NoError(t, s.Add(key, nil, false))
	if got := sortedList(t, s); len(got) != 1 || len(got[0]) != MaxKey+1 {
		t.Errorf("%d records", len(got))
	}
}

// TestSorterLetsLargeValuesGo: a value of many MiB is not kept after it was yielded.
func TestSorterLetsLargeValuesGo(t *testing.T) {
	const large = 64 << 20
	s := New(Options{Memory: 2 << 20, Dir: t.TempDir()})
	defer s.Close()
	expect.NoError(t, s.Add([]byte("a"), make([]byte, large), false))
	expect.NoError(t, s.Add([]byte("b"), nil, false))
	var kept uint64
	expect.NoError(t, s.Merge(context.Background(), func(key, value []byte) error {
		if string(key) == "a" && len(value) != large {
			t.Errorf("%d bytes", len(value))
		} else if string(key) == "b" {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			kept = m.HeapAlloc
		}
		return nil
	}))
	if kept == 0 || kept > large/2 {
		t.Errorf("%d MiB in the heap", kept>>20)
	}
}

// TestSorterPasses: a sorter writes no more than it must where runs have to be merged twice.
func TestSorterPasses(t *testing.T) {
	f := faultfs.New()
	s := smallSorter{memory: 1000, frame: 100, maxKey: 10, maxRuns: 4}.open(t, f)
	for i := 0; len(s.runs) < 6; i++ {
		expect.NoError(t, s.Add(fmt.Appendf(nil, "%05d", i), []byte("some value"), false))
	}
	sizes := s.runs[0].size + s.runs[1].size + s.runs[2].size
	if n := s.maxFanIn(); n != 4 {
		t.Fatalf("%d runs at once", n)
	}
	expect.NoError(t, s.reduce(context.Background()))
	if len(s.runs) != 4 || s.runs[0].size < sizes*9/10 || s.runs[0].size > sizes {
		t.Errorf("6 runs, the first 3 of %d bytes, became %v", sizes, s.runs)
	}
	expect.NoError(t, s.Close())
	checkNoRuns(t, f)
}

// TestSorterNoAllocations: neither adding nor merging allocates for each record.
func TestSorterNoAllocations(t *testing.T) {
	s := New(Options{Memory: 2 << 20, Dir: t.TempDir()})
	defer s.Close()
	key, value := []byte("user:000000000000"), make([]byte, 100)
	const n = 100_000
	allocs := allocations(func() {
		for i := range n {
			for j, k := 16, i*7919%n; j > 4; j, k = j-1, k/10 {
				key[j] = '0' + byte(k%10)
			}
			expect.NoError(t, s.Add(key, value, false))
		}
	})
	if allocs > n/50 {
		t.Errorf("%d allocations to add %d records", allocs, n)
	}
	records := 0
	allocs = allocations(func() {
		expect.NoError(t, s.Merge(context.Background(), func(key, value []byte) error { records++; return nil }))
	})
	if allocs > n/50 || records != n {
		t.Errorf("%d allocations to merge %d records", allocs, records)
	}
}

func allocations(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// TestSorterLongestKeys: the longest keys there may be pass through runs.
func TestSorterLongestKeys(t *testing.T) {
	s := New(Options{Dir: t.TempDir()})
	defer s.Close()
	want := []string{}
	key := bytes.Repeat([]byte("k"), MaxKey)
	for i := range 60 {
		key[len(key)-1] = byte(60 - i)
		expect.NoError(t, s.Add(key, []byte("v"), false))
		want = append(want, string(key)+"=v")
	}
	slices.Reverse(want)
	if len(s.runs) < 3 {
		t.Errorf("only %d runs", len(s.runs))
	}
	if !slices.Equal(want, sortedList(t, s)) {
		t.Error("not the same")
	}
}
