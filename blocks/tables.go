package blocks

import "unsafe"

// tables is the memory of what every lookup reads at random places of an index. From hugeTables on it is on
// pages of 2 MiB where the kernel has some: on those of 4 KiB most reads would also wait for the
// processor to walk through the page tables.
type tables struct{ region []byte }

const hugeTables = 1 << 20 // bytes

// make returns zeroed tables. They are gone with free, and only once.
func (t *tables) make(pages, buckets int) ([]pageEntry, []uint32) {
	size := pages * int(unsafe.Sizeof(pageEntry{}))
	if n := size + 4*buckets; n >= hugeTables {
		t.region = mapHuge(n)
	}
	if t.region == nil {
		return make([]pageEntry, pages), make([]uint32, buckets)
	}
	p := unsafe.Pointer(&t.region[0])
	return unsafe.Slice((*pageEntry)(p), pages), unsafe.Slice((*uint32)(unsafe.Add(p, size)), buckets)
}

func (t *tables) free() error {
	b := t.region
	t.region = nil
	if b == nil {
		return nil
	}
	return unmap(b)
}
