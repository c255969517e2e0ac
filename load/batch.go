package load

import "sync"

// Batches are large enough that the cost of passing one to another thread is negligible per record, and
// small enough to stay in the CPU's cache.
const (
	batchBytes   = 128 << 10
	batchRecords = 8 << 10

	// maxKept is the capacity above which a batch, grown for a large value, is not reused.
	maxKept = 1 << 20
)

// A batch is a sequence of records, copied out of a reader's buffers.
type batch struct {
	buf     []byte
	records []record
}

// A record locates its key in the buf of its batch. The value follows the key.
type record struct {
	at         int
	key, value int32 // lengths
	slot       slot
	deleted    bool // the record deletes its key; its value is empty
}

var batches = sync.Pool{New: func() any {
	return &batch{buf: make([]byte, 0, batchBytes+batchBytes/8)}
}}

func newBatch() *batch { return batches.Get().(*batch) }

func (b *batch) release() {
	if cap(b.buf) > maxKept {
		return
	}
	b.buf, b.records = b.buf[:0], b.records[:0]
	batches.Put(b)
}

func (b *batch) full() bool {
	return len(b.buf) >= batchBytes || len(b.records) >= batchRecords
}

func (b *batch) add(s slot, key, value []byte, deleted bool) {
	at := len(b.buf)
	b.buf = append(b.buf, key...)
	b.buf = append(b.buf, value...)
	b.records = append(b.records, record{
		at: at, key: int32(len(key)), value: int32(len(value)), slot: s, deleted: deleted,
	})
}

func (b *batch) key(r *record) []byte { return b.buf[r.at : r.at+int(r.key)] }

func (b *batch) value(r *record) []byte {
	at := r.at + int(r.key)
	return b.buf[at : at+int(r.value)]
}
