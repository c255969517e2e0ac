package blocks

import (
	"sync/atomic"
	"unsafe"

	"sequins/blocks/internal/index"
)

// maxHeld is how many bytes of pages of small blocks are kept on the heap, for all blocks.
const maxHeld = 128 << 20

// heldBytes is how many bytes are kept.
var heldBytes atomic.Int64

// heldPages are the pages of a small block that have been read and found whole, as they lie in the file.
type heldPages []atomic.Pointer[byte]

// page returns page i, which is n bytes long; nil if it is not kept.
func (h heldPages) page(i, n int) []byte {
	if i >= len(h) {
		return nil
	}
	p := h[i].Load()
	if p == nil {
		return nil
	}
	return unsafe.Slice(p, n)
}

// put keeps a copy of a page, unless too much is kept already.
func (h heldPages) put(i int, stored []byte) {
	if i >= len(h) || h[i].Load() != nil {
		return
	}
	n := int64(len(stored))
	if heldBytes.Add(n) > maxHeld || !h[i].CompareAndSwap(nil, unsafe.SliceData(append([]byte(nil), stored...))) {
		heldBytes.Add(-n)
	}
}

// free forgets all pages. x is the index of the block.
func (h heldPages) free(x *index.Index) {
	for i := range h {
		if h[i].Swap(nil) != nil {
			heldBytes.Add(-int64(x.Location(i).Length()))
		}
	}
}
