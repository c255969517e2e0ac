package blocks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

// TestTruncated cuts off a block that is mapped and was read whole, at many places. What it answers then is the value,
// or damage: never that a key is not there, nor another value, and the process goes on.
func TestTruncated(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(31, 31)), blocktest.KeyShapes["hex"], 1000, 200)
	records = append(records, record{[]byte("z"), bytes.Repeat([]byte("large"), 100_000)})
	for _, c := range []Compression{None, FSST} {
		b := buildBlock(t, records, WriterOptions{Compression: c})
		f, err := parseFooter(b[len(b)-footerSize:], int64(len(b)))
		expect.NoError(t, err)
		size := int64(len(b))
		for _, to := range []int64{
			0, 1, 4096, 8192, 10000, f.index.offset / 2, f.index.offset, f.index.offset + 10, f.filter.offset,
			f.filter.offset + f.filter.length/2, f.filter.offset + f.filter.length/2&^4095 + 100, f.properties.offset, size - footerSize, size - 4096, size - 9, size - 1,
		} {
			testTruncated(t, b, records, to)
		}
	}
}

func testTruncated(t *testing.T, b []byte, records []record, to int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "00000.block")
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	r, err := Open(path)
	expect.NoError(t, err)
	defer r.Close()
	var s Scratch
	var batch BatchScratch
	for _, rec := range records {
		if _, ok, err := r.Get(rec.key, &s); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if r.data == nil || !r.trusted.has(0) {
		t.Fatal("the block is not read through the map")
	}
	expect.NoError(t, os.Truncate(path, to))
	damaged := 0
	check := func(rec record, v Value, ok bool, err error) {
		t.Helper()
		switch {
		case errors.Is(err, ErrCorrupt):
			damaged++
		case err != nil || !ok:
			t.Fatalf("cut to %d: %q: %v, %v", to, rec.key, ok, err)
		case v.Large():
			section := v.Section(0, v.Len())
			defer section.Close()
			if got, err := io.ReadAll(section); err != nil && !errors.Is(err, ErrCorrupt) || err == nil && !bytes.Equal(got, rec.value) {
				t.Fatalf("cut to %d: large value of %d bytes: %v", to, len(got), err)
			}
		case !bytes.Equal(v.Bytes(), rec.value):
			t.Fatalf("cut to %d: %q has another value", to, rec.key)
		}
	}
	for i, rec := range records {
		if i%10 == 0 {
			_, ok, err := r.Get(append(rec.key, 'x'), &s) // so that the filter is asked first
			if ok || err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("cut to %d: absent key: %v, %v", to, ok, err)
			}
		}
		v, ok, err := r.Get(rec.key, &s)
		check(rec, v, ok, err)
	}
	for some := range slices.Chunk(records, BatchSize) {
		keys, results := make([][]byte, len(some)), make([]Result, len(some))
		for i := range some {
			keys[i] = some[i].key
		}
		r.GetBatch(keys, results, &batch)
		for i, res := range results {
			check(some[i], res.Value, res.Found, res.Err)
		}
	}
	if to < 4096 && damaged == 0 {
		t.Errorf("cut to %d: no damage found", to)
	}
	if err := r.Sweep(func(time.Duration) error { return nil }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut to %d: sweep: %v", to, err)
	}
	if err := r.Scrub(context.Background(), nil); !errors.Is(err, ErrCorrupt) && to < size(b)-footerSize {
		t.Errorf("cut to %d: scrub: %v", to, err)
	}
	if r, err := Open(path); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut to %d: opened: %v, %v", to, r, err)
	}
}

func size(b []byte) int64 { return int64(len(b)) }

// TestTruncatedWhileRead cuts a block off under eight readers.
func TestTruncatedWhileRead(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(32, 32)), blocktest.KeyShapes["hex"], 2000, 100)
	r := openFile(t, buildBlock(t, records, WriterOptions{}))
	warm := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var s Scratch
			for round := range 6 {
				for _, rec := range records {
					v, ok, err := r.Get(rec.key, &s)
					if err == nil && (!ok || !bytes.Equal(v.Bytes(), rec.value)) || err != nil && !errors.Is(err, ErrCorrupt) {
						t.Errorf("%q: %v, %v", rec.key, ok, err)
						return
					}
				}
				if round == 0 {
					warm <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-warm
	}
	for to := r.size * 9 / 10; to > 0; to -= r.size / 9 {
		expect.NoError(t, os.Truncate(r.name, to))
	}
	wg.Wait()
}

// TestPanicIsNotAFault: what is not a fault in the map is not taken for one.
func TestPanicIsNotAFault(t *testing.T) {
	r := openFile(t, buildBlock(t, makeRecords(rand.New(rand.NewPCG(33, 33)), blocktest.KeyShapes["hex"], 5000, 100), WriterOptions{}))
	defer func() {
		if recover() == nil {
			t.Error("a nil Scratch was no panic")
		}
	}()
	r.Get([]byte("0123456789abcdef"), nil)
}

// TestFilterIsCheckedWhenReadAgain: a part of the filter that is read from the file once more is compared with what it
// was when the block was opened.
func TestFilterIsCheckedWhenReadAgain(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(34, 34)), blocktest.KeyShapes["hex"], 20000, 100)
	r := openFile(t, buildBlock(t, records, WriterOptions{}))
	f, err := os.OpenFile(r.name, os.O_WRONLY, 0)
	expect.NoError(t, err)
	defer f.Close()
	s := r.footer.filter
	if _, err := f.WriteAt(make([]byte, s.length/2), s.offset); err != nil {
		t.Fatal(err)
	}
	r.trusted.clearAll()
	damaged := 0
	for _, rec := range records {
		scratch := Scratch{missed: true}
		_, ok, err := r.Get(rec.key, &scratch)
		if errors.Is(err, ErrCorrupt) {
			damaged++
		} else if !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if damaged < len(records)/3 {
		t.Errorf("%d of %d keys find the damage", damaged, len(records))
	}
	if err := r.Scrub(context.Background(), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("scrub: %v", err)
	}
}
