package blocks

import (
	"sync/atomic"
	"time"
)

// trustedPages remembers, one bit a page, which pages may be read through the map: those that
// were read and found whole since they were last known to be out of memory. A page fault in a map
// stops a whole thread of the Go scheduler, a pread does not, so a page that may be on the disk
// alone is read with pread, which also brings it into memory and sets its bit; [Reader.Sweep]
// clears the bits of pages that the kernel has since dropped.
type trustedPages []uint64

func newTrustedPages(pages int) trustedPages { return make(trustedPages, (pages+63)/64) }

func (t trustedPages) has(page int) bool {
	return page>>6 < len(t) && atomic.LoadUint64(&t[page>>6])&(1<<(page&63)) != 0
}

func (t trustedPages) set(page int) {
	if page>>6 < len(t) && !t.has(page) {
		atomic.OrUint64(&t[page>>6], 1<<(page&63))
	}
}

func (t trustedPages) clear(page int) { atomic.AndUint64(&t[page>>6], ^(uint64(1) << (page & 63))) }

// Sweep asks the kernel which pages of the block are in memory and has the others read from the
// disk, and verified, at their next use. Called once a second or so, it keeps the time short in which a lookup can
// run into a page fault. For a gigabyte of pages that lie in memory in large pieces it takes some milliseconds; where
// they have been read one by one, 15. So after every few megabytes it calls pause, with how long it has been busy since
// the last time: some 10 to 70 µs. An error of pause ends the sweep, and is what it returns.
func (r *Reader) Sweep(pause func(busy time.Duration) error) error {
	if len(r.trusted) == 0 || r.file == nil || r.file.data == nil {
		return nil
	}
	var window residency
	begun := time.Now()
	for i, e := range r.index.entries[:r.index.pages()] {
		if !r.trusted.has(i) {
			continue
		}
		l, last := e.location, window.start
		resident, err := window.covers(r.file.data, l.offset(), l.offset()+int64(l.length()))
		if err != nil {
			return err
		}
		if !resident {
			r.trusted.clear(i)
		}
		if window.start != last {
			if err := pause(time.Since(begun)); err != nil {
				return err
			}
			begun = time.Now()
		}
	}
	return nil
}

// Distrust has every page read from the disk and verified at its next use, as after opening.
func (r *Reader) Distrust() {
	for i := range r.trusted {
		atomic.StoreUint64(&r.trusted[i], 0)
	}
}
