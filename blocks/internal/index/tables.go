package index

import (
	"unsafe"

	"sequins/internal/offheap"
)

// tables is the memory of what every lookup reads at random places of an index. From hugeTables on it is on huge pages
// where the kernel has some: on those of 4 KiB most reads would also wait for the processor to walk through the page tables.
type tables struct{ region []byte }

const hugeTables = 1 << 20 // bytes

// make returns zeroed tables, which free returns.
func (t *tables) make(pages, buckets int) ([]pageEntry, []uint32) {
	size := pages * int(unsafe.Sizeof(pageEntry{}))
	n := size + 4*buckets
	if n < hugeTables {
		return make([]pageEntry, pages), make([]uint32, buckets)
	}
	region, err := offheap.Map(n)
	if err != nil { // there may be memory for it on the heap
		return make([]pageEntry, pages), make([]uint32, buckets)
	}
	t.region = region
	p := unsafe.Pointer(&t.region[0])
	return unsafe.Slice((*pageEntry)(p), pages), unsafe.Slice((*uint32)(unsafe.Add(p, size)), buckets)
}

func (t *tables) free() error {
	b := t.region
	t.region = nil
	if b == nil {
		return nil
	}
	return offheap.Unmap(b)
}
