// Package fsst compresses short strings one by one, so that each can be decompressed by itself: bytes that are frequent
// together become a code of one byte. It is the algorithm of Boncz, Neumann and Leis, "FSST: Fast Random Access String
// Compression", VLDB 2020.
//
// [Train] chooses up to 255 symbols of one to eight bytes for a sample. An [Encoder] replaces the longest symbol that
// it finds at each place by its code; a byte that no symbol begins with follows [escape]. A [Table] decodes.
package fsst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

const (
	// maxSymbols is how many symbols a table has at most.
	maxSymbols = 255

	// escape is the code in front of a byte that stands for itself.
	escape = 255

	// maxLength is the length of the longest symbol in bytes.
	maxLength = 8
)

// Table has the symbols of a block and decodes what they have encoded. It is immutable.
type Table struct {
	symbols [256]uint64 // the bytes of a symbol, the first one lowest; 0 behind them
	lengths [256]uint8  // 0 for codes that stand for nothing
	count   int
}

// AppendTo appends the table as it stands in a file:
//
//	table = count:u8 length:u8[count] symbol bytes
func (t *Table) AppendTo(dst []byte) []byte {
	dst = append(dst, byte(t.count))
	dst = append(dst, t.lengths[:t.count]...)
	for code := range t.count {
		var b [maxLength]byte
		binary.LittleEndian.PutUint64(b[:], t.symbols[code])
		dst = append(dst, b[:t.lengths[code]]...)
	}
	return dst
}

var errTable = errors.New("symbols do not fit their table")

// Parse reads a table at the beginning of b, and returns what is behind it.
func Parse(b []byte) (t *Table, rest []byte, err error) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, errTable
	}
	t = &Table{count: int(b[0])}
	lengths, b := b[1:1+t.count], b[1+t.count:]
	for code, n := range lengths {
		if n == 0 || n > maxLength || int(n) > len(b) {
			return nil, nil, fmt.Errorf("symbol %d: %w", code, errTable)
		}
		var symbol [maxLength]byte
		copy(symbol[:n], b)
		t.symbols[code], t.lengths[code] = binary.LittleEndian.Uint64(symbol[:]), n
		b = b[n:]
	}
	return t, b, nil
}

// ErrData is the error of a string that its table cannot have encoded.
var ErrData = errors.New("not encoded by its table of symbols")

// Append appends the string that src encodes. More than limit bytes of it are ErrData.
func (t *Table) Append(dst, src []byte, limit int) ([]byte, error) {
	limit += len(dst)
	for len(src) > 0 {
		if cap(dst)-len(dst) < 4*maxLength {
			dst = slices.Grow(dst, max(2*len(src), 4*maxLength))
		}
		// So many codes have room, whatever they stand for.
		n := min(len(src), (cap(dst)-len(dst))/maxLength)
		read, written := t.decode(unsafe.Pointer(unsafe.SliceData(dst[:cap(dst)][len(dst):])), src[:n])
		if read == 0 && n == len(src) {
			return nil, ErrData // an escape at the end
		}
		dst, src = dst[:len(dst)+written], src[read:]
		if len(dst) > limit {
			return nil, ErrData
		}
	}
	return dst, nil
}

// decode decodes src to out, where there is room for eight bytes for each byte of src, up to an escape whose byte is missing.
func (t *Table) decode(out unsafe.Pointer, src []byte) (read, written int) {
	i, o := 0, 0
	for i < len(src) {
		if i+4 <= len(src) {
			if four := binary.LittleEndian.Uint32(src[i:]); hasEscape(four) == 0 {
				o = t.put(out, o, byte(four))
				o = t.put(out, o, byte(four>>8))
				o = t.put(out, o, byte(four>>16))
				o = t.put(out, o, byte(four>>24))
				i += 4
				continue
			}
		}
		if src[i] != escape {
			o = t.put(out, o, src[i])
			i++
			continue
		}
		if i+1 == len(src) {
			break
		}
		*(*byte)(unsafe.Add(out, o)) = src[i+1]
		i, o = i+2, o+1
	}
	return i, o
}

// put stores the symbol of code, and bytes behind it that the next symbol overwrites.
func (t *Table) put(out unsafe.Pointer, o int, code byte) int {
	*(*uint64)(unsafe.Add(out, o)) = t.symbols[code]
	return o + int(t.lengths[code])
}

// hasEscape is not 0 if one of four codes is escape.
func hasEscape(four uint32) uint32 {
	return ((four & 0x7f7f7f7f) + 0x01010101) & four & 0x80808080
}
