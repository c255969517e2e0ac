package parquet

import (
	"encoding/binary"
	"errors"
)

// A pageHeader is what has to be known of a page before it is read: of parquet.thrift's PageHeader, the
// sizes, and of the header of its kind in that, the number of values.
type pageHeader struct {
	size                     int64 // of the header itself
	compressed, uncompressed int64
	values                   int64
	dictionary               bool
}

// The fields of PageHeader. The first of each of the last three is num_values.
const (
	fieldUncompressed = 2
	fieldCompressed   = 3
	fieldData         = 5
	fieldDictionary   = 7
	fieldDataV2       = 8
)

// The types of Thrift's compact protocol.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

var (
	errCutOff = errors.New("its header is cut off, or too long")
	errThrift = errors.New("its header is not one")
)

// A thriftReader reads Thrift's compact protocol
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md) and passes over what
// nobody asks for, without allocating. It keeps its first error.
type thriftReader struct {
	b   []byte
	err error
}

// parsePageHeader reads the header that b begins with; errCutOff if that has not all of it.
func parsePageHeader(b []byte) (h pageHeader, err error) {
	r := thriftReader{b: b}
	r.fields(func(id int, kind byte) bool {
		switch {
		case id == fieldUncompressed && kind == thriftI32:
			h.uncompressed = r.zigzag()
		case id == fieldCompressed && kind == thriftI32:
			h.compressed = r.zigzag()
		case (id == fieldData || id == fieldDictionary || id == fieldDataV2) && kind == thriftStruct:
			h.dictionary = id == fieldDictionary
			r.fields(func(id int, kind byte) bool {
				if id != 1 || kind != thriftI32 {
					return false
				}
				h.values = max(h.values, r.zigzag())
				return true
			})
		default:
			return false
		}
		return true
	})
	h.size = int64(len(b) - len(r.b))
	return h, r.err
}

// fields reads a struct: take reads a field's value and returns true, or leaves it.
func (r *thriftReader) fields(take func(id int, kind byte) bool) {
	id := 0
	for {
		head := r.byte()
		kind := head & 0xf
		if r.err != nil || kind == thriftStop {
			return
		}
		if delta := int(head >> 4); delta != 0 {
			id += delta
		} else {
			id = int(int16(r.zigzag()))
		}
		if !take(id, kind) {
			r.skip(kind, maxThriftDepth)
		}
	}
}

// maxThriftDepth is how deep a value that nobody asks for can be nested.
const maxThriftDepth = 16

func (r *thriftReader) skip(kind byte, depth int) {
	if depth == 0 {
		r.fail(errThrift)
	}
	if r.err != nil {
		return
	}
	switch kind {
	case thriftTrue, thriftFalse: // the type is the value
	case thriftByte:
		r.next(1)
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble:
		r.next(8)
	case thriftBinary:
		r.next(r.uvarint())
	case thriftList, thriftSet:
		head := r.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = r.uvarint()
		}
		r.elements(n, depth, head&0xf)
	case thriftMap:
		if n := r.uvarint(); n > 0 {
			kinds := r.byte()
			r.elements(n, depth, kinds>>4, kinds&0xf)
		}
	case thriftStruct:
		r.fields(func(_ int, kind byte) bool {
			r.skip(kind, depth-1)
			return true
		})
	default:
		r.fail(errThrift)
	}
}

// elements passes over n times a value of each kind. In there, a truth value has a byte.
func (r *thriftReader) elements(n uint64, depth int, kinds ...byte) {
	for ; n > 0 && r.err == nil; n-- {
		for _, kind := range kinds {
			if kind == thriftTrue || kind == thriftFalse {
				kind = thriftByte
			}
			r.skip(kind, depth-1)
		}
	}
}

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *thriftReader) next(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail(errCutOff)
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *thriftReader) byte() byte {
	if b := r.next(1); b != nil {
		return b[0]
	}
	return thriftStop
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	switch {
	case n < 0:
		r.fail(errThrift)
	case n == 0:
		r.fail(errCutOff)
	}
	if r.err != nil {
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *thriftReader) zigzag() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}
