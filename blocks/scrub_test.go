package blocks

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

// TestScrubLeavesMemoryAsItWas drops a block from memory, scrubs it, and finds it dropped.
func TestScrubLeavesMemoryAsItWas(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(12, 12)), blocktest.KeyShapes["hex"], 30000, 200)
	records = append(records, record{[]byte("z"), make([]byte, 3<<20)})
	path := filepath.Join(t.TempDir(), "00000.block")
	f, err := os.Create(path)
	expect.NoError(t, err)
	if _, err := f.Write(buildBlock(t, records, WriterOptions{})); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil { // dirty pages are never dropped
		t.Fatal(err)
	}
	r, err := Open(path)
	expect.NoError(t, err)
	defer r.Close()
	end := r.footer.index.offset
	expect.NoError(t, r.file.Forget(0, end))
	before := residentPages(t, r, end)
	paced := 0
	expect.NoError(t, r.Scrub(context.Background(), func(n int) error { paced += n; return nil }))
	if after := residentPages(t, r, end); after > before+maxSpan/memoryPage {
		t.Errorf("%d pages in memory before the scrub, %d after", before, after)
	}
	if int64(paced) < end-maxSpan {
		t.Errorf("waited for %d of %d bytes", paced, end)
	}
	stop := errors.New("stop")
	if err := r.Scrub(context.Background(), func(int) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped scrub: %v", err)
	}
}

func residentPages(t *testing.T, r *Reader, end int64) int {
	t.Helper()
	n := 0
	for at := int64(0); at < end; at += memoryPage {
		in, err := r.file.Resident(at, at+1)
		expect.NoError(t, err)
		if in {
			n++
		}
	}
	return n
}

// TestSweep drops pages that lookups trusted: the next lookup must read and verify them anew.
func TestSweep(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(13, 13)), blocktest.KeyShapes["hex"], 20000, 200)
	path := filepath.Join(t.TempDir(), "00000.block")
	b := buildBlock(t, records, WriterOptions{})
	f, err := os.Create(path)
	expect.NoError(t, err)
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, f.Sync())
	r, err := Open(path)
	expect.NoError(t, err)
	defer r.Close()
	var s Scratch
	get := func(i int) error { _, _, err := r.Get(records[i].key, &s); return err }
	for i := range records {
		expect.NoError(t, get(i))
	}
	last := r.props.Pages - 1
	if !r.trusted.has(last) {
		t.Fatal("a page that was read is not trusted")
	}
	expect.NoError(t, r.Sweep(func(time.Duration) error { return nil }))
	if in, err := r.file.Resident(0, r.footer.index.offset); err != nil || in && !r.trusted.has(last) {
		t.Fatalf("a sweep distrusts pages in memory: %v", err)
	}
	// Damage the file as a disk would, unseen by a reader that trusts the page.
	l := r.index.Location(last)
	b[l.Offset()+20] ^= 1
	if _, err := f.WriteAt(b[l.Offset():][:l.Length()], l.Offset()); err != nil {
		t.Fatal(err)
	}
	r.trusted.clearAll()
	if err := get(len(records) - 1); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("damage in a page that is not trusted: %v", err)
	}
	if err := r.Scrub(context.Background(), nil); !errors.Is(err, ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte(path)) {
		t.Fatalf("Scrub of a damaged block: %v", err)
	}
}
