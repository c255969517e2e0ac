package sequencefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// recordHead is the length of a record and of its key.
const recordHead = 8

// scanRecord reads the next record of a file that is not BLOCK-compressed.
func (r *Reader) scanRecord() bool {
	b := r.in.buf[r.in.pos:r.in.end]
	if len(b) < recordHead {
		return r.scanRecordSlowly()
	}
	// As unsigned numbers, the escape of a sync entry and negative lengths are larger than the available bytes: one
	// comparison sends all rare cases to scanRecordSlowly.
	length, keyLength := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
	if length > len(b)-recordHead || keyLength > length {
		return r.scanRecordSlowly()
	}
	b = b[recordHead : recordHead+length]
	r.offset = r.in.offset()
	r.in.pos += recordHead + length
	value := b[keyLength:]
	if r.header.Compression == Record {
		var ok bool
		if value, ok = r.decompress(value); !ok {
			return false
		}
	}
	return r.unwrap(b[:keyLength], value)
}

// scanRecordSlowly handles the cases that scanRecord does not: reading more of the file, sync entries, the end of the
// file and damage.
func (r *Reader) scanRecordSlowly() bool {
	in := &r.in
	for {
		r.offset = in.offset()
		if !in.fill(recordHead) && in.len() < 4 {
			return r.endOfFile("within the length of a record")
		}
		length := int(int32(binary.BigEndian.Uint32(in.buf[in.pos:in.end])))
		if length == syncEscape {
			if !r.takeSync() {
				return false
			}
			continue
		}
		if length < 0 || length > maxRecord {
			return r.fail(r.corrupt(r.offset, fmt.Sprintf("impossible record length %d", length)))
		}
		if !in.fill(recordHead + length) {
			return r.fail(r.ended(r.offset, fmt.Sprintf("within a record of %d bytes", length)))
		}
		if n := int32(binary.BigEndian.Uint32(in.buf[in.pos+4:])); n < 0 || int(n) > length {
			return r.fail(r.corrupt(r.offset, fmt.Sprintf("a key of %d bytes in a record of %d", n, length)))
		}
		return r.scanRecord()
	}
}

// decompress returns a value that is compressed by itself.
func (r *Reader) decompress(value []byte) ([]byte, bool) {
	decompressed, err := r.columns[0].all(value)
	if err != nil {
		return nil, r.fail(r.corrupt(r.offset, fmt.Sprintf("value of %d bytes: %v", len(value), err)))
	}
	return decompressed, true
}

// unwrap sets Key and Value from their serialised forms.
func (r *Reader) unwrap(key, value []byte) bool {
	if r.keys == int32Size && r.values == int32Size && hasInt32Size(key) && hasInt32Size(value) {
		r.key, r.value = key[4:], value[4:]
		return true
	}
	k, ok := r.keys.unwrap(key)
	if !ok {
		return r.fail(r.corrupt(r.offset, fmt.Sprintf("a key of %d bytes that is not one %s", len(key), r.header.KeyClass)))
	}
	v, ok := r.values.unwrap(value)
	if !ok {
		return r.fail(r.corrupt(r.offset, fmt.Sprintf("a value of %d bytes that is not one %s", len(value), r.header.ValueClass)))
	}
	r.key, r.value = k, v
	return true
}

// takeSync consumes a sync entry and checks it.
func (r *Reader) takeSync() bool {
	in := &r.in
	if !in.fill(4 + syncSize) {
		return r.fail(r.ended(in.offset(), "within a sync marker"))
	}
	if !bytes.Equal(in.buf[in.pos+4:in.pos+4+syncSize], r.header.Sync[:]) {
		return r.fail(r.corrupt(in.offset(), "the sync marker is not that of the header"))
	}
	in.pos += 4 + syncSize
	return true
}

// endOfFile ends the scan if too few bytes for another record or block are left. where is for those that are.
func (r *Reader) endOfFile(where string) bool {
	if r.in.len() == 0 && r.in.err == io.EOF {
		return r.fail(io.EOF)
	}
	return r.fail(r.ended(r.offset, where))
}
