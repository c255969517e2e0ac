package index

import (
	"errors"
	"unsafe"

	"sequins/internal/offheap"
)

// tables is the memory of what every lookup reads at random places of an index. From hugeTables on it is on huge pages
// where the kernel has some: on those of 4 KiB most reads would also wait for the processor to walk through the page tables.
type tables struct{ regions [][]byte }

const hugeTables = 512 << 10 // bytes

// table returns n zero values, which free returns.
func table[T any](t *tables, n int) []T {
	if size := n * int(unsafe.Sizeof(*new(T))); size >= hugeTables {
		if region, err := offheap.Map(size); err == nil {
			t.regions = append(t.regions, region)
			return unsafe.Slice((*T)(unsafe.Pointer(&region[0])), n)
		}
	}
	return make([]T, n) // also if there is no memory beside the heap
}

func (t *tables) free() (err error) {
	for _, region := range t.regions {
		err = errors.Join(err, offheap.Unmap(region))
	}
	t.regions = nil
	return err
}
