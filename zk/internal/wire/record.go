package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// encoder builds a record.
type encoder struct{ b []byte }

func (e *encoder) int32(n int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(n)) }
func (e *encoder) int64(n int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(n)) }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) string(s string) {
	e.int32(int32(len(s)))
	e.b = append(e.b, s...)
}

// packet returns the record behind its length.
func (e *encoder) packet() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(e.b))), e.b...)
}

// errMalformed is the error of a record that does not fit its bytes.
var errMalformed = errors.New("malformed reply")

// decoder reads a record from the bytes of one packet. After the first error it returns zero values.
type decoder struct {
	b   []byte
	err error
}

// take returns the next n bytes, or nil.
func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.fail("%d bytes are left, %d are needed", len(d.b), n)
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
	}
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// buffer returns bytes that alias the packet. A length of -1 stands for no bytes.
func (d *decoder) buffer() []byte {
	n := d.int32()
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) string() string { return string(d.buffer()) }

// strings reads a vector. Its count is checked against the bytes left before anything is allocated for it.
func (d *decoder) strings() []string {
	n := d.int32()
	if n == -1 {
		return nil
	}
	if n < 0 || int(n) > len(d.b)/4 {
		d.fail("%d strings in %d bytes", n, len(d.b))
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = d.string()
	}
	return all
}

// end returns the first error. Bytes that are left are one.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("%d bytes are left over", len(d.b))
	}
	return d.err
}

// readPacket reads a packet of least to most bytes. What it allocates grows with what has arrived.
func readPacket(r io.Reader, least, most int) ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(header[:])
	if uint64(n) < uint64(least) || uint64(n) > uint64(most) {
		return nil, fmt.Errorf("packet of %d bytes: not a ZooKeeper server", n)
	}
	packet, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(packet) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return packet, err
}
