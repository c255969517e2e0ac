package blocks

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// However many ask for pages of a disk that hangs, no more than maxReads wait for it, and all are answered
// when it goes on.
func TestReadsAreBounded(t *testing.T) {
	records := make([]record, 1000)
	for i := range records {
		records[i] = record{fmt.Appendf(nil, "%04d", i), fmt.Appendf(nil, "value %d", i)}
	}
	b := buildBlock(t, records, WriterOptions{Partitions: 1})
	disk := &hanging{ReaderAt: bytes.NewReader(b), let: make(chan struct{})}
	r, err := NewReader(disk, int64(len(b)), "hanging")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	disk.hangs.Store(true)
	var wg sync.WaitGroup
	for i := range maxReads + 200 {
		wg.Go(func() {
			var s Scratch
			want := records[i%len(records)]
			v, ok, err := r.Get(want.key, &s)
			if err != nil || !ok || !bytes.Equal(v.Bytes(), want.value) {
				t.Errorf("%s: %q, %v, %v", want.key, v.Bytes(), ok, err)
			}
		})
	}
	deadline := time.Now().Add(time.Minute)
	for disk.waiting.Load() < maxReads {
		if time.Now().After(deadline) {
			t.Fatalf("only %d reads of %d", disk.waiting.Load(), maxReads)
		}
		time.Sleep(time.Millisecond)
	}
	if len(reading) != maxReads {
		t.Errorf("%d reads at a time", len(reading))
	}
	disk.hangs.Store(false)
	close(disk.let)
	wg.Wait()
	if n := disk.waiting.Load(); n != maxReads {
		t.Errorf("%d waited for the disk at once", n)
	}
}
