package sequencefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

const recordHead = 8

// scanRecord reads the next record of a file that is not BLOCK-compressed.
func (r *Reader) scanRecord() bool {
	in := &r.in
	for {
		r.offset = in.Offset()
		if !in.Fill(recordHead) && in.Len() < 4 {
			return r.endOfFile("within the length of a record")
		}
		length := int(int32(binary.BigEndian.Uint32(in.Bytes())))
		if length == syncEscape {
			if !r.takeSync() {
				return false
			}
			continue
		}
		if length < 0 || length > maxRecord {
			return r.fail(r.corrupt(r.offset, fmt.Sprintf("impossible record length %d", length)))
		}
		if !in.Fill(recordHead + length) {
			return r.fail(r.ended(r.offset, fmt.Sprintf("within a record of %d bytes", length)))
		}
		b := in.Bytes()[:recordHead+length]
		in.Skip(len(b))
		keyLength := int(int32(binary.BigEndian.Uint32(b[4:])))
		if keyLength < 0 || keyLength > length {
			return r.fail(r.corrupt(r.offset, fmt.Sprintf("a key of %d bytes in a record of %d", keyLength, length)))
		}
		key, value := b[recordHead:recordHead+keyLength], b[recordHead+keyLength:]
		if r.header.Compression == Record {
			if err := r.columns[0].reset(r.decode, value, MaxExpanded); err != nil {
				return r.fail(r.corrupt(r.offset, fmt.Sprintf("value of %d bytes: %v", len(value), err)))
			}
			value = r.columns[0].rest
		}
		return r.unwrap(key, value)
	}
}

// unwrap sets Key and Value from their serialised forms.
func (r *Reader) unwrap(key, value []byte) bool {
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
	if !in.Fill(4 + syncSize) {
		return r.fail(r.ended(in.Offset(), "within a sync marker"))
	}
	if !bytes.Equal(in.Bytes()[4:4+syncSize], r.header.Sync[:]) {
		return r.fail(r.corrupt(in.Offset(), "the sync marker is not that of the header"))
	}
	in.Skip(4 + syncSize)
	return true
}

// endOfFile ends the scan if too few bytes for another record or block are left. where is for those that are.
func (r *Reader) endOfFile(where string) bool {
	if r.in.Len() == 0 && r.in.Err() == io.EOF {
		return r.fail(io.EOF)
	}
	return r.fail(r.ended(r.offset, where))
}
