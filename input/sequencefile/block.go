package sequencefile

import (
	"encoding/binary"
	"fmt"
)

// block is the current block of a BLOCK-compressed file.
type block struct {
	left int // records not read yet
	size int // bytes of the block in the input's buffer, which are consumed when it is finished
}

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
	b := &r.block
	for b.left == 0 {
		if !r.nextBlock() {
			return false
		}
	}
	b.left--
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
	if n > MaxExpanded {
		return nil, r.failColumn(bytes, errTooLarge)
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

// nextBlock finishes the block that has been read and starts the next.
func (r *Reader) nextBlock() bool {
	if r.block.size > 0 && !r.finishBlock() {
		return false
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

// finishBlock checks that nothing is left over in the current block, and releases its bytes.
func (r *Reader) finishBlock() bool {
	b := &r.block
	for i := range r.columns {
		if err := r.columns[i].finish(); err != nil {
			return r.failColumn(i, err)
		}
	}
	r.in.Skip(b.size)
	b.size = 0
	return true
}

// readBlock reads the block whose sync marker has just been read, and starts its columns.
func (r *Reader) readBlock() bool {
	b := &r.block
	var ok bool
	b.size = 0
	if b.left, ok = r.blockLength("number of records"); !ok {
		return false
	}
	var start, end [len(columnNames)]int // relative to the input's position
	for i, name := range columnNames {
		n, ok := r.blockLength(name)
		if !ok {
			return false
		}
		start[i], end[i] = b.size, b.size+n
		b.size += n
		if !r.in.Fill(b.size) {
			return r.fail(r.ended(r.offset, fmt.Sprintf("within a block, in its %s of %d bytes", name, n)))
		}
	}
	data := r.in.Bytes()
	for i := range r.columns {
		if err := r.columns[i].reset(data[start[i]:end[i]]); err != nil {
			return r.failColumn(i, err)
		}
	}
	return true
}

// blockLength reads a vint in the head of a block or in front of one of its columns.
func (r *Reader) blockLength(what string) (int, bool) {
	in := &r.in
	in.Fill(r.block.size + maxVIntLen) // or less, near the end of the file
	n, size := decodeLength(in.Bytes()[r.block.size:])
	switch {
	case size < 0:
		return 0, r.fail(r.corrupt(r.offset, "a block with an impossible length: "+what))
	case size == 0:
		return 0, r.fail(r.ended(r.offset, "within a block, in the length of its "+what))
	}
	r.block.size += size
	return n, true
}
