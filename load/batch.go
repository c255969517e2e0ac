package load

import "sync"

// Batches are large enough that passing one from thread to thread costs
// nothing per record, and small enough to stay in the CPU's cache meanwhile.
const (
	batchBytes   = 128 << 10
	batchRecords = 8 << 10

	// maxKept is the size above which a batch, grown for a large value, is not
	// kept for another use.
	maxKept = 1 << 20
)

// A batch is a number of records, copied out of a reader's buffers.
type batch struct {
	buf     []byte
	records []record
}

// A record says where in the batch's buf its key lies, with its value behind.
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

// release gives a batch back once nobody looks at it any more.
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
