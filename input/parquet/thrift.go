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
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md) from a slice.
// Counts and lengths are compared with the bytes that are left. It keeps its first error: errCutOff where b ends too
// early, errThrift for everything else.
type thriftReader struct {
	b   []byte
	err error
}

// fields reads a struct. take reads a field's value and returns true, or returns false to have it skipped.
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
		if r.err != nil {
			return
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

// A field is a field of a struct that is read, and where to: an *int64, *int8, *bool or *[]byte, a structure or structs.
type field struct {
	id int
	to any
}

// A structure reads the fields of a struct.
type structure func()

// structs are a list of structs. read is called for each, until there is an error; what names them in an error.
type structs struct {
	most int
	what string
	read func()
}

// read reads the given fields of a struct and skips the others. seen has a bit for the id of each that was read. It is an
// error to have one of them twice, which no writer does: lists would add up.
func (r *thriftReader) read(wanted ...field) (seen uint64) {
	r.fields(func(id int, kind byte) bool {
		for i := range wanted {
			if wanted[i].id != id {
				continue
			}
			if !r.value(kind, wanted[i].to) {
				return false
			}
			if seen&(1<<id) != 0 {
				r.fail(errThrift)
			}
			seen |= 1 << id
			return true
		}
		return false
	})
	return seen
}

// value reads a field, and reports whether it is of the wanted type.
func (r *thriftReader) value(kind byte, to any) (ok bool) {
	switch to := to.(type) {
	case *int64:
		return r.number(kind, to)
	case *int8:
		if ok = kind == thriftByte; ok {
			*to = int8(r.byte())
		}
	case *bool: // the type is the value
		if ok = kind == thriftTrue || kind == thriftFalse; ok {
			*to = kind == thriftTrue
		}
	case *[]byte:
		if ok = kind == thriftBinary; ok {
			*to = r.binary()
		}
	case structure:
		if ok = kind == thriftStruct; ok {
			to()
		}
	case structs:
		if ok = kind == thriftList; ok {
			r.list(to)
		}
	}
	return ok
}

func (r *thriftReader) list(l structs) {
	n, kind := r.listHead()
	if n == 0 {
		return
	}
	switch {
	case kind != thriftStruct, l.what == "" && n > uint64(l.most):
		r.fail(errThrift)
	case n > uint64(l.most):
		r.fail(unsupported("there are %d %s, and up to %d are read", n, l.what, l.most))
	}
	for ; n > 0 && r.err == nil; n-- {
		l.read()
	}
}

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
