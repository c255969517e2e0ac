package sequencefile

import (
	"encoding/binary"
	"fmt"
)

// Compression is the compression mode of a file.
type Compression uint8

const (
	None   Compression = iota // nothing
	Record                    // each value by itself
	Block                     // keys and values of many records together
)

func (c Compression) String() string { return [...]string{"NONE", "RECORD", "BLOCK"}[c] }

// Format versions. The supported ones differ only in the header.
const (
	versionMin      = 4 // Hadoop 0.5: class names as Text, block compression
	versionCodec    = 5 // names its codec
	versionMetadata = 6 // has metadata; the last, in use since 2006
)

const (
	Magic    = "SEQ" // at the start of a file, before the version
	syncSize = 16
	// syncEscape precedes a sync marker, in place of a record length.
	syncEscape = -1
	// maxHeader bounds the header, in bytes. Metadata may contain a schema.
	maxHeader = 16 << 20
	// maxMetadata bounds the number of pairs, which take more memory than their bytes.
	maxMetadata = 1 << 16
)

// Header is the header of a file.
type Header struct {
	Version     int // 4, 5 or 6
	KeyClass    string
	ValueClass  string
	Compression Compression
	Codec       string            // Java class name; empty if nothing is compressed
	Metadata    map[string]string // nil if there is none
	Sync        [syncSize]byte
}

// headerParser parses a header field by field and keeps the first error.
type headerParser struct {
	r    *Reader
	left int // bytes that the header may still have
	err  error
}

func (r *Reader) readHeader() error {
	p := &headerParser{r: r, left: maxHeader}
	h := &r.header
	h.Version = p.version()
	h.KeyClass = p.str("key class")
	h.ValueClass = p.str("value class")
	h.Compression = p.compression()
	if h.Compression != None {
		h.Codec = p.codec(h.Version)
	}
	if h.Version >= versionMetadata {
		h.Metadata = p.metadata()
	}
	copy(h.Sync[:], p.take(syncSize, "sync marker"))
	return p.err
}

// take returns the next n bytes, or nil after an error.
func (p *headerParser) take(n int, what string) []byte {
	if p.err != nil {
		return nil
	}
	if n > p.left {
		p.fail(fmt.Sprintf("%s of %d bytes makes the header larger than %d bytes", what, n, maxHeader))
		return nil
	}
	in := &p.r.in
	if !in.Fill(n) {
		p.err = p.r.ended(in.Offset(), "in the header's "+what)
		return nil
	}
	b := in.Bytes()[:n]
	in.Skip(n)
	p.left -= n
	return b
}

func (p *headerParser) fail(reason string) {
	if p.err == nil {
		p.err = p.r.corrupt(p.r.in.Offset(), reason)
	}
}

func (p *headerParser) version() int {
	b := p.take(len(Magic)+1, "magic")
	if p.err != nil {
		return 0
	}
	if string(b[:len(Magic)]) != Magic {
		p.err = p.r.corrupt(0, fmt.Sprintf("it begins with %q, not %q: not a SequenceFile", b[:len(Magic)], Magic))
		return 0
	}
	v := int(b[len(Magic)])
	if v < versionMin || v > versionMetadata {
		p.err = p.r.corrupt(0, fmt.Sprintf("version %d is not supported (%d to %d are)", v, versionMin, versionMetadata))
	}
	return v
}

func (p *headerParser) str(what string) string {
	if p.err != nil {
		return ""
	}
	in := &p.r.in
	in.Fill(maxVIntLen) // or less, near the end of a short file
	n, size := decodeLength(in.Bytes())
	switch {
	case size < 0:
		p.fail("bad length of the " + what)
		return ""
	case size == 0: // the file ends within the length
		size = in.Len() + 1
	}
	p.take(size, what)
	return string(p.take(n, what))
}

func (p *headerParser) compression() Compression {
	b := p.take(2, "compression flags")
	if p.err != nil {
		return None
	}
	switch [2]byte(b) {
	case [2]byte{0, 0}:
		return None
	case [2]byte{1, 0}:
		return Record
	case [2]byte{1, 1}:
		return Block
	}
	p.fail(fmt.Sprintf("impossible compression flags %d, %d", b[0], b[1]))
	return None
}

func (p *headerParser) codec(version int) string {
	if version < versionCodec {
		return DefaultCodec
	}
	name := p.str("codec class")
	if p.err == nil && codecs[name] == nil {
		p.fail(fmt.Sprintf("codec %q is not supported", name))
	}
	return name
}

func (p *headerParser) metadata() map[string]string {
	b := p.take(4, "metadata")
	if p.err != nil {
		return nil
	}
	n := binary.BigEndian.Uint32(b)
	if n > maxMetadata {
		p.fail(fmt.Sprintf("%d pairs of metadata, more than %d", n, maxMetadata))
		return nil
	}
	if n == 0 {
		return nil
	}
	m := make(map[string]string)
	for i := uint32(0); i < n && p.err == nil; i++ {
		k := p.str("metadata")
		m[k] = p.str("metadata")
	}
	return m
}
