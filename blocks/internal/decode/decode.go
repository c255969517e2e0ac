// Package decode reads the fields of a section of a block in their order, with all lengths checked.
package decode

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is the error for a section whose fields do not fit its length or each other.
var ErrMalformed = errors.New("malformed section")

// Decoder reads fields one after the other. After its first error it returns zeros.
type Decoder struct {
	b   []byte
	err error
}

// New returns a decoder of b.
func New(b []byte) Decoder { return Decoder{b: b} }

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Len returns how many bytes are left.
func (d *Decoder) Len() int { return len(d.b) }

// Bytes returns the next n bytes, as a part of the section.
func (d *Decoder) Bytes(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *Decoder) fail() {
	if d.err == nil {
		d.err = ErrMalformed
	}
}

// U16 returns the next two bytes as a number.
func (d *Decoder) U16() uint16 {
	if b := d.Bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// U32 returns the next four bytes as a number.
func (d *Decoder) U32() uint32 {
	if b := d.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 returns the next eight bytes as a number.
func (d *Decoder) U64() uint64 {
	if b := d.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Count returns the next four bytes as the number of items that follow. It is an error if fewer than that many items of
// size bytes are left.
func (d *Decoder) Count(size int) int {
	n := d.U32()
	if int64(n)*int64(size) > int64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// Rest returns all that is left.
func (d *Decoder) Rest() []byte { return d.Bytes(len(d.b)) }
