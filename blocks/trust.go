package blocks

import "sync/atomic"

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
// disk, and verified, at their next use. It takes about a millisecond for a gigabyte; called once
// a second or so, it keeps the time short in which a lookup can run into a page fault.
func (r *Reader) Sweep() error {
	if len(r.trusted) == 0 || r.file == nil || r.file.data == nil {
		return nil
	}
	var window residency
	for i, e := range r.index.entries[:r.index.pages()] {
		l := e.location
		if !r.trusted.has(i) {
			continue
		}
		resident, err := window.covers(r.file.data, l.offset(), l.offset()+int64(l.length()))
		if err != nil {
			return err
		}
		if !resident {
			r.trusted.clear(i)
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
