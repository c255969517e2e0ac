package blocks

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"sequins/test/expect"
)

// A key without bytes gives the same block whether it comes as nil or as an empty slice.
func TestEmptyKeyIsOneKey(t *testing.T) {
	for _, others := range [][]string{nil, {"a", "b"}} {
		var built [][]byte
		for _, empty := range [][]byte{nil, {}, bytes.Repeat([]byte("x"), 3)[:0]} {
			var out bytes.Buffer
			w, err := NewWriter(&out, WriterOptions{Partitions: 1})
			expect.NoError(t, err)
			expect.NoError(t, w.Add(empty, []byte("value")))
			for _, key := range others {
				expect.NoError(t, w.Add([]byte(key), nil))
			}
			if _, err := w.Finish(); err != nil {
				t.Fatal(err)
			}
			built = append(built, out.Bytes())
		}
		for _, b := range built[1:] {
			if !bytes.Equal(b, built[0]) {
				t.Errorf("with %q behind it: blocks of %d and %d bytes differ", others, len(built[0]), len(b))
			}
		}
	}
}

// longKeys are n keys of 64 KiB in order: all with one long prefix, or in pairs that share one of their own.
func longKeys(n int, pairs bool) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		group := 0
		if pairs {
			group = i / 2
		}
		rng := rand.NewChaCha8([32]byte{byte(group), byte(group >> 8)})
		keys[i] = make([]byte, MaxKey)
		_, _ = rng.Read(keys[i]) // never fails
		copy(keys[i][MaxKey-8:], fmt.Sprintf("%08d", i))
	}
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

// heapNow is how many bytes are in use on the heap.
func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A block of long keys is built in bounded memory, whatever they share, and every key is found.
func TestLongKeys(t *testing.T) {
	for _, pairs := range []bool{false, true} {
		keys := longKeys(400, pairs)
		w, err := NewWriter(io.Discard, WriterOptions{Partitions: 1, TempDir: t.TempDir()})
		expect.NoError(t, err)
		before := heapNow()
		for i, key := range keys {
			expect.NoError(t, w.Add(key, fmt.Append(nil, i)))
		}
		if n := heapNow() - before; n > 8<<20 {
			t.Errorf("pairs %v: %d bytes for an index of %d keys", pairs, n, len(keys))
		}
		w.Abort()

		records := make([]record, len(keys))
		for i, key := range keys {
			records[i] = record{key, fmt.Append(nil, i)}
		}
		r := openFile(t, buildBlock(t, records, WriterOptions{Partitions: 1}))
		var s Scratch
		for i, key := range keys {
			v, found, err := r.Get(key, &s)
			if err != nil || !found || string(v.Bytes()) != fmt.Sprint(i) {
				t.Fatalf("pairs %v: key %d: found %v, %v", pairs, i, found, err)
			}
			key[MaxKey-1] ^= 0x80
			if _, found, err := r.Get(key, &s); found || err != nil {
				t.Fatalf("pairs %v: changed key %d: found %v, %v", pairs, i, found, err)
			}
		}
	}
}
