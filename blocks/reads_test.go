package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
)

// hanging is a disk that does not answer until it is let go.
type hanging struct {
	io.ReaderAt
	hangs   atomic.Bool
	let     chan struct{}
	waiting atomic.Int64
}

func (h *hanging) ReadAt(p []byte, off int64) (int, error) {
	if h.hangs.Load() {
		h.waiting.Add(1)
		<-h.let
	}
	return h.ReaderAt.ReadAt(p, off)
}

func numbered(n int) []record {
	records := make([]record, n)
	for i := range records {
		records[i] = record{fmt.Appendf(nil, "%04d", i), fmt.Appendf(nil, "value %d", i)}
	}
	return records
}

// onDisk opens a block of which the disk d has the bytes.
func onDisk(t *testing.T, d *hanging, b []byte) *Reader {
	t.Helper()
	d.ReaderAt = bytes.NewReader(b)
	r, err := NewReader(d, int64(len(b)), "hanging")
	expect.NoError(t, err)
	return r
}

// ownReads counts the reads of a test apart from those of others, in its bubble.
func ownReads(t *testing.T) {
	before := reading
	reading = make(chan struct{}, maxReads)
	t.Cleanup(func() { reading = before })
}

// askAll looks a key up in r by n goroutines, and counts those that the disk was too busy for.
func askAll(t *testing.T, wg *sync.WaitGroup, r *Reader, n int, want record, busy *atomic.Int64) {
	for range n {
		wg.Go(func() {
			var s Scratch
			v, ok, err := r.Get(want.key, &s)
			switch {
			case errors.Is(err, ErrBusy):
				busy.Add(1)
			case err != nil || !ok || !bytes.Equal(v.Bytes(), want.value):
				t.Errorf("%s: %q, %v, %v", want.key, v.Bytes(), ok, err)
			}
		})
	}
}

// TestHangingBlockLeavesOthers: a block whose part of the disk hangs is waited for by a few; the rest are refused after a
// while, and other blocks are read meanwhile.
func TestHangingBlockLeavesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ownReads(t)
		records := numbered(1000)
		b := buildBlock(t, records, WriterOptions{Partitions: 1})
		bad, good := &hanging{let: make(chan struct{})}, &hanging{}
		r, other := onDisk(t, bad, b), onDisk(t, good, b)
		defer r.Close()
		defer other.Close()
		bad.hangs.Store(true)
		var wg sync.WaitGroup
		var busy atomic.Int64
		askAll(t, &wg, r, 3*maxReads, records[7], &busy)
		synctest.Wait()
		if n := bad.waiting.Load(); n != maxBlockReads {
			t.Errorf("%d reads of one block at a time", n)
		}
		var s Scratch
		for _, rec := range records {
			if v, ok, err := other.Get(rec.key, &s); err != nil || !ok || !bytes.Equal(v.Bytes(), rec.value) {
				t.Fatalf("%s of another block: %q, %v, %v", rec.key, v.Bytes(), ok, err)
			}
		}
		time.Sleep(2 * readPatience)
		if n := busy.Load(); n != 3*maxReads-maxBlockReads {
			t.Errorf("%d were refused", n)
		}
		bad.hangs.Store(false)
		close(bad.let)
		wg.Wait()
	})
}

// TestReadsAreBounded: however many ask for pages of a disk that hangs, no more than maxReads wait for it, and those are
// answered when it goes on.
func TestReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ownReads(t)
		records := numbered(100)
		b := buildBlock(t, records, WriterOptions{Partitions: 1})
		const blocks, each = maxReads/maxBlockReads + 3, maxBlockReads + 20
		disk := &hanging{let: make(chan struct{})}
		var wg sync.WaitGroup
		var busy atomic.Int64
		for range blocks {
			r := onDisk(t, disk, b)
			defer r.Close()
			disk.hangs.Store(true)
			askAll(t, &wg, r, each, records[1], &busy)
			synctest.Wait()
			disk.hangs.Store(false)
			if len(reading) == maxReads {
				break
			}
		}
		if n := disk.waiting.Load(); n != maxReads {
			t.Errorf("%d reads at a time", n)
		}
		time.Sleep(2 * readPatience)
		close(disk.let)
		wg.Wait()
		if n := busy.Load(); n != maxReads/maxBlockReads*(each-maxBlockReads) {
			t.Errorf("%d were refused", n)
		}
	})
}
