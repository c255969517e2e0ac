package shard

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// functions returns the functions that fit the number of files, of those that do not hash numbers.
func functions(d *Detector) (fit []Partitioner) {
	for _, cut := range d.Candidates() {
		if cut.By.bits() == 0 {
			fit = append(fit, cut.By)
		}
	}
	return fit
}

// strings are the functions of keys that are strings. Hive is not among them, which is told from String only if that does not fit.
var onStrings = []Partitioner{String, Hadoop, Spark, Cascading, Murmur3, Kafka, HiveMurmur3}

func TestDetectorFindsTheFunction(t *testing.T) {
	const n = 10 // not a power of two: with those, string and spark agree on ASCII
	for _, p := range onStrings {
		d := NewDetector(n, 1, 0, AnyNames)
		for i := range 200 {
			key := fmt.Appendf(nil, "user:%012d", i)
			d.Add(p.Partition(key, n), key)
		}
		if diff := cmp.Diff([]Partitioner{p}, functions(d)); diff != "" {
			t.Errorf("cut by %v: %s", p, diff)
		}
	}
}

func TestDetectorKeepsWhatCannotBeToldApart(t *testing.T) {
	d := NewDetector(16, 1, 0, AnyNames)
	for i := range 500 {
		key := fmt.Appendf(nil, "user:%012d", i)
		d.Add(String.Partition(key, 16), key)
	}
	if diff := cmp.Diff([]Partitioner{String, Spark}, functions(d)); diff != "" {
		t.Error(diff)
	}
	// One non-ASCII key is enough.
	key := []byte("ключ")
	d.Add(String.Partition(key, 16), key)
	if diff := cmp.Diff([]Partitioner{String}, functions(d)); diff != "" {
		t.Error(diff)
	}
}

func TestDetectorMerge(t *testing.T) {
	key := []byte("ключ")
	var n int
	for n = 2; String.Partition(key, n) == Hadoop.Partition(key, n); n++ {
	}
	a, b := NewDetector(n, 1, 0, AnyNames), NewDetector(n, 1, 0, AnyNames)
	a.Add(String.Partition(key, n), key)
	b.Add(Hadoop.Partition(key, n), key)
	a.Merge(NewDetector(n, 1, 0, AnyNames))
	if !slices.Contains(functions(a), String) {
		t.Errorf("%v after nothing was merged", functions(a))
	}
	a.Merge(b)
	if fit := functions(a); slices.Contains(fit, String) || slices.Contains(fit, Hadoop) {
		t.Errorf("%v", fit)
	}
}

func TestDetectorEdges(t *testing.T) {
	if diff := cmp.Diff(onStrings, functions(NewDetector(5, 1, 0, AnyNames))); diff != "" {
		t.Errorf("no keys: %s", diff)
	}
	d := NewDetector(1, 1, 0, AnyNames)
	d.Add(0, []byte("a"))
	if diff := cmp.Diff(onStrings, functions(d)); diff != "" {
		t.Errorf("one partition: %s", diff)
	}
	d.Add(1, []byte("a"))
	if got := functions(d); got != nil {
		t.Errorf("a file beyond the last partition left %v", got)
	}
}

// TestDetectorFindsGaps: a number of partitions of which some have no file is found with the function.
func TestDetectorFindsGaps(t *testing.T) {
	for _, p := range Partitioners() {
		if p == Hive {
			continue // as String
		}
		const n = 37
		last := 0
		key := func(i int) []byte { return fmt.Appendf(nil, "%d", 12345*i-500_000) }
		for i := range 30 {
			last = max(last, p.Partition(key(i), n))
		}
		d := NewDetector(0, last+1, 4*(last+1), AnyNames)
		if got := d.Candidates(); got != nil || d.Decided() {
			t.Errorf("%v: without keys: %v", p, got)
		}
		for i := range 30 {
			d.Add(p.Partition(key(i), n), key(i))
		}
		if !slices.Contains(d.Candidates(), Cut{p, n}) {
			t.Errorf("%v of %d with files up to %d: found %v", p, n, last, d.Candidates())
		}
		if p.bits() == 0 && p != String && !d.Decided() {
			t.Errorf("%v: not decided", p)
		}
	}
}

// TestDetectorPrefersFilesThatAreThere: gaps are considered only if nothing fits without.
func TestDetectorPrefersFilesThatAreThere(t *testing.T) {
	d := NewDetector(7, 7, 28, PartNames)
	for i := range 300 {
		key := fmt.Appendf(nil, "user:%012d", i)
		if at := Murmur3.Partition(key, 8); at < 7 { // the last one is empty
			d.Add(at, key)
		}
	}
	if diff := cmp.Diff([]Cut{{Murmur3, 8}}, d.Candidates()); diff != "" {
		t.Error(diff)
	}
	d = NewDetector(7, 7, 28, PartNames)
	for i := range 3 {
		key := fmt.Appendf(nil, "user:%012d", i)
		d.Add(String.Partition(key, 7), key)
	}
	if got := d.Candidates(); len(got) == 0 || got[0] != (Cut{String, 7}) || !d.Decided() {
		t.Errorf("%v, decided: %v", got, d.Decided())
	}
}

func TestFileIndex(t *testing.T) {
	tests := []struct {
		name string
		want int // -1: the position
	}{
		{"part-00000", 0},
		{"part-00012", 12},
		{"part-r-00003", 3},
		{"part-m-100000", 100000},
		{"part-r-00007/data", 7},
		{"part-00003-6b0c1f5e-c000", 3},
		{"part-00012-00034.spl", 12},
		{"part-r-00004.seq", 4},
		{"part-reducer-00004", 4},
		{"part-00000-0b8f5f3e-7d0e-4d6e-9c5e-1f3f6d7f1a2b_00003.c000.snappy.parquet", 3}, // a bucket of Spark
		{"day=2026-01-31/part-00004-0b8f5f3e-7d0e-4d6e-9c5e-1f3f6d7f1a2b.c001.snappy.parquet", 4},
		{"part-00002-0b8f5f3e-7d0e-4d6e-9c5e-1f3f6d7f1a2b.c000.avro", 2},
		{"part-00002-0b8f5f3e_00003", 2},
		{"words+7+0000000100+0000000199.avro", 7}, // of Kafka Connect
		{"my.topic+12+0000000100.avro", 12},
		{"words+x+0000000100.avro", -1},
		{"000003_0", 3}, // buckets of Hive
		{"000011_0_copy_2", 11},
		{"bucket_00005", 5},
		{"000003_0.snappy", 3},
		{"000003_0x", -1},
		{"part-", -1},
		{"part-r-", -1},
		{"part-r", -1},
		{"part-r-x", -1},
		{"part-0000a", -1},
		{"part-r2-00001", -1},
		{"part-1234567890", -1},
		{"00003", -1},
		{"data", -1},
		{"names-00003", -1},
		{"", -1},
	}
	const position = 77
	for _, tt := range tests {
		want := tt.want
		if want < 0 {
			want = position
		}
		if got := FileIndex(tt.name, position); got != want {
			t.Errorf("FileIndex(%q) = %d, want %d", tt.name, got, want)
		}
	}
}

func FuzzHash(f *testing.F) {
	for _, tt := range javaHashes {
		f.Add([]byte(tt.key), 7)
	}
	f.Fuzz(func(t *testing.T, key []byte, n int) {
		for _, p := range Partitioners() {
			if got := p.Partition(key, n); got < 0 || got >= max(n, 1) {
				t.Fatalf("%v.Partition(%x, %d) = %d", p, key, n, got)
			}
		}
	})
}
