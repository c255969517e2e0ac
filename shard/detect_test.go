package shard

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetectorFindsTheFunction(t *testing.T) {
	const n = 10 // not a power of two: with those, string and spark agree on ASCII
	for _, p := range Partitioners() {
		d := NewDetector(n)
		for i := range 200 {
			key := fmt.Appendf(nil, "user:%012d", i)
			d.Add(p.Partition(key, n), key)
		}
		if diff := cmp.Diff([]Partitioner{p}, d.Candidates()); diff != "" {
			t.Errorf("cut by %v: %s", p, diff)
		}
	}
}

func TestDetectorKeepsWhatCannotBeToldApart(t *testing.T) {
	d := NewDetector(16)
	for i := range 500 {
		key := fmt.Appendf(nil, "user:%012d", i)
		d.Add(String.Partition(key, 16), key)
	}
	if diff := cmp.Diff([]Partitioner{String, Spark}, d.Candidates()); diff != "" {
		t.Error(diff)
	}
	// One non-ASCII key is enough.
	key := []byte("ключ")
	d.Add(String.Partition(key, 16), key)
	if diff := cmp.Diff([]Partitioner{String}, d.Candidates()); diff != "" {
		t.Error(diff)
	}
}

func TestDetectorMerge(t *testing.T) {
	key := []byte("ключ")
	var n int
	for n = 2; String.Partition(key, n) == Hadoop.Partition(key, n); n++ {
	}
	a, b := NewDetector(n), NewDetector(n)
	a.Add(String.Partition(key, n), key)
	b.Add(Hadoop.Partition(key, n), key)
	a.Merge(NewDetector(n))
	if !slices.Contains(a.Candidates(), String) {
		t.Errorf("%v after nothing was merged", a.Candidates())
	}
	a.Merge(b)
	if fit := a.Candidates(); slices.Contains(fit, String) || slices.Contains(fit, Hadoop) {
		t.Errorf("%v", fit)
	}
}

func TestDetectorEdges(t *testing.T) {
	if diff := cmp.Diff(Partitioners(), NewDetector(5).Candidates()); diff != "" {
		t.Errorf("no keys: %s", diff)
	}
	d := NewDetector(1)
	d.Add(0, []byte("a"))
	if diff := cmp.Diff(Partitioners(), d.Candidates()); diff != "" {
		t.Errorf("one partition: %s", diff)
	}
	d.Add(1, []byte("a"))
	if got := d.Candidates(); got != nil {
		t.Errorf("a file beyond the last partition left %v", got)
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
		for rest := key; len(rest) > 0; {
			r, size := decodeRune(rest)
			if size < 1 || size > len(rest) || r > 0x10ffff {
				t.Fatalf("decodeRune(%x) = %#x, %d", rest, r, size)
			}
			rest = rest[size:]
		}
	})
}
