package blocks

import (
	"fmt"
	"sync/atomic"
	"time"

	"sequins/blocks/internal/file"
)

// trustedPages remembers, one bit a page, which pages may be read through the map: those that
// were read and found whole since they were last known to be out of memory. A page fault in a map
// stops a processor of the Go scheduler, so a page that may be on the disk alone is read by
// [Reader.read], which also brings it into memory and sets its bit; [Reader.Sweep]
// clears the bits of pages that the kernel has since dropped.
type trustedPages []uint64

func (t trustedPages) has(page int) bool {
	return page>>6 < len(t) && atomic.LoadUint64(&t[page>>6])&(1<<(page&63)) != 0
}

func (t trustedPages) set(page int) {
	if page>>6 < len(t) && !t.has(page) {
		atomic.OrUint64(&t[page>>6], 1<<(page&63))
	}
}

func (t trustedPages) clear(page int) { atomic.AndUint64(&t[page>>6], ^(uint64(1) << (page & 63))) }

func (r *Reader) chunkBit(i int) int { return r.props.Pages + 1 + i }

// valueBit is the bit of the chunk of a large value that begins at off. A chunk has at least chunkSize bytes if it is not packed, so
// each has a multiple of chunkSize in the file for itself.
func (r *Reader) valueBit(off int64) int {
	return r.chunkBit(r.filter.Chunks()) + int((off+chunkSize-1)/chunkSize)
}

// Sweep asks the kernel which pages of the block, and which parts of its filter, are in memory and has the others read
// from the disk, and verified, at their next use. Called once a second or so, it keeps the time short in which a lookup
// can run into a page fault. For a gigabyte of pages that lie in memory in large pieces it takes some milliseconds; where
// they have been read one by one, 15. So after every few megabytes it calls pause, with how long it has been busy since
// the last time: some 10 to 70 µs. An error of pause ends the sweep, and is what it returns. A file that has become
// shorter is ErrCorrupt.
func (r *Reader) Sweep(pause func(busy time.Duration) error) error {
	if r.data == nil {
		return nil
	}
	size, err := r.file.CurrentSize()
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	if size < r.size {
		return r.corrupt(-1, size, fmt.Errorf("the file ends here, and not at %d", r.size))
	}
	w := sweeper{r: r, pause: pause, begun: time.Now()}
	end := int64(0) // of the page before
	for i := range r.index.Pages() {
		l := r.index.Location(i)
		for ; l.Offset()-end >= chunkSize; end += chunkSize { // chunks of a large value
			if err := w.look(r.trusted, r.valueBit(end), end, min(2*chunkSize, l.Offset()-end)); err != nil {
				return err
			}
		}
		end = l.Offset() + int64(l.Length())
		if err := w.look(r.trusted, i, l.Offset(), int64(l.Length())); err != nil {
			return err
		}
	}
	for i := range r.filter.Chunks() {
		from, to := r.filter.Chunk(i)
		if err := w.look(r.trusted, r.chunkBit(i), r.footer.filter.offset+from, to-from); err != nil {
			return err
		}
	}
	return w.look(r.trusted, r.props.Pages, r.size-int64(len(magic)), int64(len(magic)))
}

// sweeper walks once over a map.
type sweeper struct {
	r      *Reader
	window file.Residency
	pause  func(busy time.Duration) error
	begun  time.Time
}

// look clears bit i if n bytes at off are not in memory.
func (w *sweeper) look(bits trustedPages, i int, off, n int64) error {
	if !bits.has(i) {
		return nil
	}
	last := w.window.Start()
	resident, err := w.window.Covers(w.r.data, off, off+n)
	if err != nil {
		return err
	}
	if !resident {
		bits.clear(i)
	}
	if w.window.Start() != last {
		if err := w.pause(time.Since(w.begun)); err != nil {
			return err
		}
		w.begun = time.Now()
	}
	return nil
}

// clearAll has every page, and the filter, read from the disk and verified at its next use, as after opening.
func (t trustedPages) clearAll() {
	for i := range t {
		atomic.StoreUint64(&t[i], 0)
	}
}
