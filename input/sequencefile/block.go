package sequencefile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The columns of a block, in their order in the file.
const (
	keyLengths = iota
	keyBytes
	valueLengths
	valueBytes
)

var columnNames = [...]string{"key lengths", "keys", "value lengths", "values"}

// scanBlock reads the next record of a BLOCK-compressed file.
func (r *Reader) scanBlock() bool {
	for r.left == 0 {
		if !r.nextBlock() {
			return false
		}
	}
	r.left--
	key, ok := r.entry(keyLengths, keyBytes)
	if !ok {
		return false
	}
	value, ok := r.entry(valueLengths, valueBytes)
	if !ok {
		return false
	}
	return r.unwrap(key, value)
}

// entry returns the next key or value of its columns.
func (r *Reader) entry(lengths, bytes int) ([]byte, bool) {
	n, err := r.columns[lengths].length()
	if err != nil {
		return nil, r.failColumn(lengths, err)
	}
	b, err := r.columns[bytes].take(n)
	if err != nil {
		return nil, r.failColumn(bytes, err)
	}
	return b, true
}

func (r *Reader) failColumn(i int, err error) bool {
	return r.fail(r.corrupt(r.offset, fmt.Sprintf("%s of the block: %v", columnNames[i], err)))
}

// nextBlock checks that nothing is left over in the block that has been read, and reads the next.
func (r *Reader) nextBlock() bool {
	for i := range r.columns {
		if len(r.columns[i].rest) > 0 {
			return r.failColumn(i, errors.New("bytes after its last record"))
		}
	}
	in := &r.in
	r.offset = in.Offset()
	if !in.Fill(4) {
		return r.endOfFile("within the sync marker of a block")
	}
	if int32(binary.BigEndian.Uint32(in.Bytes())) != syncEscape {
		return r.fail(r.corrupt(r.offset, "a block does not begin with a sync marker"))
	}
	return r.takeSync() && r.readBlock()
}

// readBlock reads the block whose sync marker has just been read.
func (r *Reader) readBlock() (ok bool) {
	if r.left, ok = r.blockLength("number of records"); !ok {
		return false
	}
	room := maxBlock
	for i := range r.columns {
		n, ok := r.blockLength(columnNames[i])
		if !ok {
			return false
		}
		if n > maxBlock {
			return r.failColumn(i, fmt.Errorf("%d bytes, more than %d", n, maxBlock))
		}
		if !r.in.Fill(n) {
			return r.fail(r.ended(r.offset, fmt.Sprintf("within a block, in its %s of %d bytes", columnNames[i], n)))
		}
		if err := r.columns[i].reset(r.decode, r.in.Bytes()[:n], room); err != nil {
			return r.failColumn(i, err)
		}
		r.in.Skip(n)
		room -= len(r.columns[i].rest)
	}
	return true
}

// blockLength reads a vint in the head of a block or in front of one of its columns.
func (r *Reader) blockLength(what string) (int, bool) {
	in := &r.in
	in.Fill(maxVIntLen) // or less, near the end of the file
	n, size := decodeLength(in.Bytes())
	switch {
	case size < 0:
		return 0, r.fail(r.corrupt(r.offset, "a block with an impossible length: "+what))
	case size == 0:
		return 0, r.fail(r.ended(r.offset, "within a block, in the length of its "+what))
	}
	in.Skip(size)
	return n, true
}
