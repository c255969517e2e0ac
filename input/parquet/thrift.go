package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
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

// maxThriftDepth bounds the nesting of skipped values.
const maxThriftDepth = 16

var (
	errCutOff = errors.New("the header is truncated or too long")
	errThrift = errors.New("malformed Thrift")
)

// A thriftReader reads Thrift's compact protocol
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md) from a slice, without
// allocating. Counts and lengths are compared with the bytes that are left. It keeps its first error:
// errCutOff where b ends too early, errThrift for everything else.
type thriftReader struct {
	b   []byte
	err error
}

// fields reads a struct. take reads a field's value and returns true, or returns false to have it skipped. seen has a
// bit for each field with an id of less than 64 that was read.
func (r *thriftReader) fields(take func(id int, kind byte) bool) (seen uint64) {
	id := 0
	for {
		head := r.byte()
		kind := head & 0xf
		if r.err != nil || kind == thriftStop {
			return seen
		}
		if delta := int(head >> 4); delta != 0 {
			id += delta
		} else {
			id = int(int16(r.zigzag()))
		}
		switch {
		case !take(id, kind):
			r.skip(kind, maxThriftDepth)
		case 0 <= id && id < 64:
			seen |= 1 << id
		}
		if r.err != nil {
			return seen
		}
	}
}

// require makes it an error that a struct lacks fields that parquet.thrift requires: then its end is not where the
// reader has found it.
func (r *thriftReader) require(seen uint64, what string, ids ...int) {
	for _, id := range ids {
		if seen&(1<<id) == 0 {
			r.fail(fmt.Errorf("%s has no field %d, which is required", what, id))
		}
	}
}

// structs reads a list of structs and calls read for each of them, until there is an error.
func (r *thriftReader) structs(most int, what string, read func()) {
	n, kind := r.listHead()
	if n == 0 {
		return
	}
	switch {
	case kind != thriftStruct, what == "" && n > uint64(most):
		r.fail(errThrift)
	case n > uint64(most):
		r.fail(unsupported("there are %d %s, and up to %d are read", n, what, most))
	}
	for ; n > 0 && r.err == nil; n-- {
		read()
	}
}

// raw returns the bytes of a struct.
func (r *thriftReader) raw() []byte {
	start := r.b
	r.skip(thriftStruct, maxThriftDepth)
	if r.err != nil {
		return nil
	}
	return start[:len(start)-len(r.b)]
}

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
		r.binary()
	case thriftList, thriftSet:
		n, kind := r.listHead()
		r.elements(n, depth, kind)
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

func (r *thriftReader) listHead() (n uint64, kind byte) {
	head := r.byte()
	n = uint64(head >> 4)
	if n == 15 {
		n = r.uvarint()
	}
	if n > uint64(len(r.b)) { // each element has a byte at least
		r.fail(errCutOff)
	}
	if r.err != nil {
		return 0, 0
	}
	return n, head & 0xf
}

// elements skips n times a value of each kind. Within lists and maps, a boolean has a byte.
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

func (r *thriftReader) binary() []byte { return r.next(r.uvarint()) }

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

// number reads an integer, and reports whether the field is one.
func (r *thriftReader) number(kind byte, to *int64) bool {
	if kind != thriftI32 && kind != thriftI64 && kind != thriftI16 {
		return false
	}
	n := r.zigzag()
	if kind != thriftI64 && n != int64(int32(n)) {
		r.fail(errThrift)
	}
	*to = n
	return true
}

// boolean sets a boolean, which is encoded in its type, and reports whether the field is one.
func boolean(kind byte, to *bool) bool {
	*to = kind == thriftTrue
	return kind == thriftTrue || kind == thriftFalse
}
