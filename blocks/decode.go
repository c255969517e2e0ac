package blocks

import (
	"encoding/binary"
	"errors"
)

var errSection = errors.New("malformed section")

// decoder reads a section in a straight line: it keeps its first error, and from then on returns
// zeros.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) bytes(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errSection
	}
}

func (d *decoder) u16() uint16 {
	if b := d.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count believes n only if that many items of at least size bytes are left.
func (d *decoder) count(n uint32, size int) int {
	if int64(n)*int64(size) > int64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) rest() []byte { return d.bytes(len(d.b)) }
