package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

type record struct{ key, value []byte }

// buildBlock writes records, which must ascend, and returns the file.
func buildBlock(t testing.TB, records []record, opts WriterOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, opts)
	expect.NoError(t, err)
	for _, r := range records {
		expect.NoError(t, w.Add(r.key, r.value))
	}
	props, err := w.Finish()
	expect.NoError(t, err)
	if props.Records != int64(len(records)) {
		t.Fatalf("properties say %d records, wrote %d", props.Records, len(records))
	}
	return b.Bytes()
}

func openBytes(t testing.TB, b []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "test.block")
	expect.NoError(t, err)
	return r
}

func openFile(t testing.TB, b []byte) *Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "00000.block")
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	r, err := Open(path)
	expect.NoError(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// valueBytes reads a value whole.
func valueBytes(v Value) ([]byte, error) {
	if !v.Large() {
		return v.Bytes(), nil
	}
	s := v.Section(0, v.Len())
	defer s.Close()
	return io.ReadAll(s)
}

func makeRecords(rng *rand.Rand, shape func(*rand.Rand, int) []byte, n, maxValue int) []record {
	seen := map[string][]byte{}
	for i := range n {
		v := make([]byte, rng.IntN(maxValue+1))
		for j := range v {
			v[j] = byte('a' + rng.IntN(4))
		}
		seen[string(shape(rng, i))] = v
	}
	var out []record
	for k, v := range seen {
		out = append(out, record{[]byte(k), v})
	}
	slices.SortFunc(out, func(a, b record) int { return bytes.Compare(a.key, b.key) })
	return out
}

func checkBlock(t *testing.T, r *Reader, records []record, rng *rand.Rand) {
	t.Helper()
	var s Scratch
	known := map[string]bool{}
	for round := range 2 { // the second finds pages that are trusted
		for _, rec := range records {
			known[string(rec.key)] = true
			v, ok, err := r.Get(rec.key, &s)
			if err != nil || !ok {
				t.Fatalf("round %d: Get(%.60q) = %v, %v", round, rec.key, ok, err)
			}
			if got, err := valueBytes(v); err != nil || !bytes.Equal(got, rec.value) || v.Len() != int64(len(rec.value)) {
				t.Fatalf("Get(%.60q): %d bytes, want %d; %v", rec.key, len(got), len(rec.value), err)
			}
		}
	}
	for _, rec := range records {
		for _, k := range [][]byte{append(bytes.Clone(rec.key), 0), append(bytes.Clone(rec.key), 'x'), rec.key[:max(0, len(rec.key)-1)], fmt.Appendf(nil, "%d", rng.Uint32())} {
			if known[string(k)] {
				continue
			}
			if _, ok, err := r.Get(k, &s); ok || err != nil {
				t.Fatalf("Get of absent %.60q = %v, %v", k, ok, err)
			}
		}
	}
	checkIteration(t, r, records, rng)
	if err := r.Verify(context.Background()); err != nil {
		t.Fatalf("Verify: %v", err)
	}
}

func collect(t *testing.T, it *Iterator) []string {
	t.Helper()
	var keys []string
	for it.Next() {
		keys = append(keys, string(it.Key()))
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	if it.Next() {
		t.Fatal("Next after the end")
	}
	return keys
}

func checkIteration(t *testing.T, r *Reader, records []record, rng *rand.Rand) {
	t.Helper()
	it := r.Iter(nil, nil)
	for i := 0; it.Next(); i++ {
		got, err := valueBytes(it.Value())
		if err != nil || !bytes.Equal(it.Key(), records[i].key) || !bytes.Equal(got, records[i].value) {
			t.Fatalf("record %d: %.60q, %v, want %.60q", i, it.Key(), err, records[i].key)
		}
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	var all []string
	for _, rec := range records {
		all = append(all, string(rec.key))
	}
	if got := collect(t, r.Iter(nil, nil)); !slices.Equal(got, all) {
		t.Fatalf("walked over %d of %d keys", len(got), len(all))
	}
	for range 30 {
		a, b := randomBound(rng, records), randomBound(rng, records)
		var want, wantPrefix []string
		for _, k := range all {
			if k >= string(a) && k < string(b) {
				want = append(want, k)
			}
			if bytes.HasPrefix([]byte(k), a) {
				wantPrefix = append(wantPrefix, k)
			}
		}
		if got := collect(t, r.Iter(a, b)); !slices.Equal(got, want) {
			t.Fatalf("Iter(%.40q, %.40q): %d keys, want %d", a, b, len(got), len(want))
		}
		if got := collect(t, r.Iter(a, PrefixEnd(a))); !slices.Equal(got, wantPrefix) {
			t.Fatalf("Iter of the prefix %.40q: %d keys, want %d", a, len(got), len(wantPrefix))
		}
	}
}

func randomBound(rng *rand.Rand, records []record) []byte {
	if len(records) == 0 {
		return []byte("x")
	}
	k := bytes.Clone(records[rng.IntN(len(records))].key)
	switch rng.IntN(4) {
	case 0:
		return k[:rng.IntN(len(k)+1)]
	case 1:
		return append(k, byte(rng.Uint32()))
	}
	return k
}

func TestBlockModel(t *testing.T) {
	for name, shape := range blocktest.KeyShapes {
		for _, c := range []Compression{None, FSST, Zstd} {
			t.Run(fmt.Sprintf("%s/%v", name, c), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(1, uint64(len(name))))
				for _, n := range []int{0, 1, 2, 40, 400} {
					records := makeRecords(rng, shape, n, 200)
					size := []int{MinBlockSize, 1024, 4096, 1 << 20}[rng.IntN(4)]
					b := buildBlock(t, records, WriterOptions{Compression: c, BlockSize: size, TempDir: t.TempDir()})
					checkBlock(t, openBytes(t, b), records, rng)
					checkBlock(t, openFile(t, b), records, rng)
				}
			})
		}
	}
}

func TestLargeValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, c := range []Compression{None, FSST, Zstd} {
		t.Run(c.String(), func(t *testing.T) {
			var records []record
			for i, n := range []int{0, 1, 4095, 4096, LargeValue - 1, LargeValue, LargeValue + 1, 2 * chunkSize, 3*chunkSize + 5, 1<<20 + 1, 7} {
				v := make([]byte, n)
				for j := range v {
					v[j] = byte(rng.IntN(1 + i*20))
				}
				records = append(records, record{fmt.Appendf(nil, "key%02d", i), v})
			}
			records = append(records, record{bytes.Repeat([]byte{'z'}, MaxKey), make([]byte, LargeValue+9)}, record{append(bytes.Repeat([]byte{'z'}, MaxKey-1), '{'), []byte("v")})
			r := openFile(t, buildBlock(t, records, WriterOptions{Compression: c}))
			checkBlock(t, r, records, rng)
			checkSections(t, r, records, rng)
		})
	}
}

func checkSections(t *testing.T, r *Reader, records []record, rng *rand.Rand) {
	t.Helper()
	var s Scratch
	for range 300 {
		rec := records[rng.IntN(len(records))]
		v, ok, err := r.Get(rec.key, &s)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		off := rng.IntN(len(rec.value) + 1)
		n := rng.IntN(len(rec.value) - off + 2)
		st := v.Section(int64(off), int64(n))
		got, err := io.ReadAll(st)
		want := rec.value[off:min(off+n, len(rec.value))]
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("Section(%d, %d) of %d bytes: %d bytes, want %d; %v", off, n, len(rec.value), len(got), len(want), err)
		}
		expect.NoError(t, st.Close())
	}
}

func TestSameInputSameBytes(t *testing.T) {
	for _, c := range []Compression{None, FSST, Zstd} {
		records := makeRecords(rand.New(rand.NewPCG(3, 3)), blocktest.KeyShapes["hex"], 3000, 300)
		a := buildBlock(t, records, WriterOptions{Compression: c, TempDir: t.TempDir()})
		b := buildBlock(t, records, WriterOptions{Compression: c})
		if !bytes.Equal(a, b) {
			t.Errorf("%v: two blocks of the same records differ", c)
		}
	}
}

func TestContentHashIgnoresCompression(t *testing.T) {
	records := append(makeRecords(rand.New(rand.NewPCG(3, 3)), blocktest.KeyShapes["user"], 500, 300), record{[]byte("z"), make([]byte, 200_000)})
	want := openBytes(t, buildBlock(t, records, WriterOptions{})).Properties().ContentHash
	for _, c := range []Compression{FSST, Zstd} {
		if got := openBytes(t, buildBlock(t, records, WriterOptions{Compression: c})).Properties().ContentHash; got != want {
			t.Errorf("%v: content hash %s, uncompressed %s", c, got, want)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	newWriter := func() *Writer {
		w, err := NewWriter(io.Discard, WriterOptions{})
		expect.NoError(t, err)
		return w
	}
	for _, second := range []string{"a", "Z", ""} {
		w := newWriter()
		expect.NoError(t, errors.Join(w.Add([]byte("a"), nil)))
		if err := w.Add([]byte(second), nil); !errors.Is(err, ErrOrder) {
			t.Errorf("Add(%q) after a: %v", second, err)
		}
		if err := w.Add([]byte("z"), nil); !errors.Is(err, ErrOrder) {
			t.Errorf("Add after a failed Add: %v", err)
		}
		if _, err := w.Finish(); !errors.Is(err, ErrOrder) {
			t.Errorf("Finish after a failed Add: %v", err)
		}
	}
	if err := newWriter().Add(make([]byte, MaxKey+1), nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Add of a long key: %v", err)
	}
	w := newWriter()
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := w.Add([]byte("a"), nil); !errors.Is(err, ErrStage) {
		t.Errorf("Add after Finish: %v", err)
	}
	w = newWriter()
	w.Abort()
	if _, err := w.Finish(); !errors.Is(err, ErrStage) {
		t.Errorf("Finish after Abort: %v", err)
	}
	if _, err := NewWriter(io.Discard, WriterOptions{BlockSize: 10}); err == nil {
		t.Error("a block size of 10 is accepted")
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(4, 4)), blocktest.KeyShapes["hex"], 5000, 100)
	for _, c := range []Compression{None, FSST, Zstd} {
		if raceEnabled && c == Zstd {
			continue // its decoder's pool allocates under the race detector, and only there
		}
		r := openFile(t, buildBlock(t, records, WriterOptions{Compression: c}))
		var s Scratch
		i := 0
		get := func() {
			if _, ok, err := r.Get(records[i%len(records)].key, &s); !ok || err != nil {
				t.Fatal(ok, err)
			}
			i++
		}
		for range records {
			get()
		}
		if n := testing.AllocsPerRun(1000, get); n != 0 {
			t.Errorf("%v: %v allocations a warm hit", c, n)
		}
		if n := testing.AllocsPerRun(1000, func() { r.trusted.clearAll(); get() }); n != 0 {
			t.Errorf("%v: %v allocations a hit with pread", c, n)
		}
	}
}
