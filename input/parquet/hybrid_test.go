package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"sequins/internal/render"
)

// all reads numbers, some at once, until there are as many as most or no more.
func (h hybrid) all(most, atOnce int) (out []uint32) {
	some := make([]uint32, atOnce)
	for len(out) < most && h.read(some) {
		out = append(out, some...)
	}
	return out
}

func TestHybrid(t *testing.T) {
	for _, tt := range []struct {
		width byte
		b     []byte
		want  []uint32
	}{
		{3, []byte{1<<1 | 1, 0x88, 0xc6, 0xfa}, []uint32{0, 1, 2, 3, 4, 5, 6, 7}}, // the example of Encodings.md
		{3, []byte{3 << 1, 5}, []uint32{5, 5, 5}},
		{3, []byte{1<<1 | 1, 0x88, 0xc6}, []uint32{0, 1, 2, 3, 4}}, // the rest of the group is missing
		{1, []byte{2 << 1, 1, 1<<1 | 1, 0x05, 1 << 1, 0}, []uint32{1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0}},
		{12, []byte{2 << 1, 0xfe, 0x0f}, []uint32{0xffe, 0xffe}},
		{24, []byte{1 << 1, 1, 2, 3}, []uint32{0x030201}},
		{32, append([]byte{1<<1 | 1}, bytes.Repeat([]byte{0xff, 0, 0, 0x80}, 8)...), slices.Repeat([]uint32{0x800000ff}, 8)},
		{32, []byte{1 << 1, 0xff, 0xff, 0xff, 0xff}, []uint32{math.MaxUint32}},
		{0, []byte{2 << 1, 1<<1 | 1}, make([]uint32, 10)},
		{1, []byte{0x80, 1, 1}, slices.Repeat([]uint32{1}, 64)},
		{1, []byte{0, 1, 2 << 1, 1}, nil},        // a run of nothing
		{1, []byte{1}, nil},                      // packed numbers, of which there are none
		{9, []byte{1<<1 | 1, 0xff}, nil},         // less than a number
		{9, []byte{1 << 1, 1}, nil},              // a part of a number
		{1, nil, nil},                            // no run
		{1, []byte{0x80}, nil},                   // a part of a head
		{1, bytes.Repeat([]byte{0xff}, 20), nil}, // a head of many bits
	} {
		for _, atOnce := range []int{1, max(1, len(tt.want))} {
			got := hybrid{b: tt.b, width: tt.width}.all(64, atOnce)
			if got = got[:min(len(got), 64)]; !slices.Equal(got, tt.want) {
				t.Errorf("%x with %d bits, %d at once: %d; want %d", tt.b, tt.width, atOnce, got, tt.want)
			}
		}
	}
}

// naive decodes up to most numbers, bit by bit.
func naive(b []byte, width, most int) (out []uint32) {
	number := func(at, bits int) (v uint32) {
		for i := range bits {
			v |= uint32(b[(at+i)/8]>>((at+i)%8)&1) << i
		}
		return v
	}
	for len(out) < most {
		head, n := binary.Uvarint(b)
		if n <= 0 || head > math.MaxUint32 || head < 2 {
			return out
		}
		b = b[n:]
		count, size := int(head>>1), (width+7)/8
		if head&1 == 0 {
			if size > len(b) {
				return out
			}
			v := number(0, 8*size) // padding is a part of a number that repeats
			out = append(out, slices.Repeat([]uint32{v}, min(count, most-len(out)))...)
			b = b[size:]
			continue
		}
		for i := 0; i < 8*count && len(out) < most; i++ {
			if (i+1)*width > 8*len(b) {
				return out
			}
			out = append(out, number(i*width, width))
		}
		b = b[min(count*width, len(b)):]
	}
	return out
}

func FuzzHybrid(f *testing.F) {
	f.Add([]byte{1<<1 | 1, 0x88, 0xc6, 0xfa, 3 << 1, 5}, byte(3))
	f.Add([]byte{0x80, 1, 1, 5, 1, 2, 3, 4}, byte(12))
	f.Add([]byte{2 << 1, 1<<1 | 1}, byte(0))
	f.Fuzz(func(t *testing.T, b []byte, width byte) {
		width %= 33
		const most = 3000
		want := naive(b, int(width), most+256)
		for _, n := range []int{1, 7, 256} {
			got := hybrid{b: b, width: width}.all(most, n)
			if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || len(got) < most && len(want)-len(got) >= n {
				t.Errorf("%x with %d bits, %d at once: %d; want %d", b, width, n, got, want)
			}
		}
	})
}

// Booleans are numbers of one bit; other encodings of values are made PLAIN.
func TestValues(t *testing.T) {
	boolean, float := testLeaf("v", 0, physicalBoolean, logicalType{}), testLeaf("v", 0, physicalFloat, logicalType{})
	fixed := schemaElement{name: "v", leaf: true, physical: physicalFixed, length: 3}
	for _, tt := range []struct {
		field    schemaElement
		encoding int64
		body     []byte
		want     string // or the reason of an error
	}{
		{boolean, encodingPlain, []byte{2}, "[a=false b=true]"},
		{boolean, encodingPlain, nil, "truncated"},
		{boolean, encodingRLE, append(plain32(4), 1<<1, 1, 1<<1, 0), "[a=true b=false]"},
		{boolean, encodingRLE, append(plain32(2), 1<<1|1, 2, 0), "[a=false b=true]"},
		{boolean, encodingRLE, append(plain32(2), 2<<1, 2), "beyond the dictionary"},
		{boolean, encodingRLE, append(plain32(3), 2<<1, 1), "truncated"},
		{boolean, encodingRLE, []byte{2, 0}, "truncated"},
		{boolean, encodingDictionary, nil, "RLE_DICTIONARY of BOOLEAN: not supported"},
		{boolean, encodingSplit, nil, "not supported"},
		{float, encodingSplit, []byte{0, 0, 0, 0, 0x80, 0x20, 0x3f, 0xc1}, "[a=1 b=-10]"},
		{float, encodingSplit, make([]byte, 7), "7 bytes cannot be split"},
		{float, encodingSplit, make([]byte, 12), "12 bytes cannot be split into up to 2"},
		{float, encodingSplit, make([]byte, 4), "truncated"},
		{float, encodingSplit, nil, "truncated"},
		{float, encodingBitPacked, nil, "BIT_PACKED of FLOAT: not supported"},
		{fixed, encodingSplit, []byte("adbecf"), "[a=abc b=def]"},
		{fixed, encodingPlain, []byte("abcdef"), "[a=abc b=def]"},
		{fixed, encodingPlain, []byte("abcde"), "truncated"},
		{testLeaf("v", 0, physicalInt32, logicalType{}), encodingPlain, append(plain32(-1), 0, 0, 0), "truncated"},
		{testLeaf("v", 0, physicalInt64, logicalType{}), encodingPlain, append(plain64(-1), plain32(0)...), "truncated"},
		{testLeaf("v", 0, physicalInt96, logicalType{}), encodingPlain, make([]byte, 23), "truncated"},
		{testLeaf("v", 0, physicalBytes, logicalType{}), encodingPlain, append(plainText("x"), 1, 0, 0, 0), "truncated"},
		{testLeaf("v", 0, physicalBytes, logicalType{}), encodingPlain, append(plainText("x"), 0xff, 0xff, 0xff, 0xff, 1), "truncated"},
		{testLeaf("v", 0, physicalBytes, logicalType{}), encodingPlain, append(plainText("x"), 1, 0, 0), "truncated"},
		{schemaElement{name: "v", leaf: true, physical: physicalFixed}, encodingPlain, nil, "column v: its values would have 0 bytes"},
	} {
		for _, kind := range []int64{pageData, pageDataV2} {
			file := withValue(tt.field, testColumn{values: 2, pages: []testPage{{pageHeader{kind: kind, values: 2, encoding: tt.encoding}, tt.body}}})
			got, err := scanBytes(file, render.Paths{Key: "k", Value: "v"})
			if ok := err == nil && fmt.Sprint(got) == tt.want; !ok && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%x, encoding %d: %q, %v; want %s", tt.body, tt.encoding, got, err, tt.want)
			}
		}
	}
}

// Levels that a page lacks or that the schema has not are errors. Levels of a page V2 can be there without a need.
func TestLevels(t *testing.T) {
	v, list := testLeaf("v", optional, physicalInt32, logicalType{}), testLeaf("v", repeated, physicalInt32, logicalType{})
	required := testLeaf("v", 0, physicalInt32, logicalType{})
	numbers := append(plain32(1), plain32(2)...)
	for what, tt := range map[string]struct {
		field schemaElement
		h     pageHeader
		body  []byte
		want  string // or the reason of an error
	}{
		"optional":           {v, pageHeader{}, append(append(plain32(2), 2<<1, 1), numbers...), "[a=1 b=2]"},
		"optional, V2":       {v, pageHeader{kind: pageDataV2, defSize: 2}, append([]byte{2 << 1, 1}, numbers...), "[a=1 b=2]"},
		"repeated, V2":       {list, pageHeader{kind: pageDataV2, defSize: 2, repSize: 2}, append([]byte{2 << 1, 0, 2 << 1, 1}, numbers...), "[a=[1] b=[2]]"},
		"required, V2":       {required, pageHeader{kind: pageDataV2, defSize: 1, repSize: 2}, append([]byte{1, 2, 3}, numbers...), "[a=1 b=2]"},
		"none":               {v, pageHeader{kind: pageDataV2}, numbers, "levels are truncated"},
		"none, V1":           {v, pageHeader{}, append(plain32(0), numbers...), "levels are truncated"},
		"one":                {v, pageHeader{kind: pageDataV2, defSize: 2}, append([]byte{1 << 1, 1}, numbers...), "levels are truncated"},
		"one of repetition":  {list, pageHeader{kind: pageDataV2, defSize: 2, repSize: 2}, append([]byte{1 << 1, 0, 2 << 1, 1}, numbers...), "levels are truncated"},
		"beyond the page":    {v, pageHeader{}, append(plain32(math.MaxInt32), numbers...), "levels are truncated"},
		"without a size":     {v, pageHeader{}, []byte{1, 0}, "levels are truncated"},
		"of 2":               {v, pageHeader{kind: pageDataV2, defSize: 2}, append([]byte{2 << 1, 2}, numbers...), errLevels.Error()},
		"of repetition of 2": {list, pageHeader{kind: pageDataV2, defSize: 2, repSize: 2}, append([]byte{2 << 1, 2, 2 << 1, 1}, numbers...), errLevels.Error()},
		"a row without a beginning": {list, pageHeader{kind: pageDataV2, defSize: 2, repSize: 2}, append([]byte{2 << 1, 1, 2 << 1, 1}, numbers...),
			errLevels.Error()},
		"bit-packed": {v, pageHeader{defLevels: 1}, append(plain32(2), numbers...), "the encoding BIT_PACKED of levels: not supported"},
	} {
		tt.h.values = 2
		got, err := scanBytes(withValue(tt.field, testColumn{values: 2, pages: []testPage{{tt.h, tt.body}}}), render.Paths{Key: "k", Value: "v"})
		if ok := err == nil && fmt.Sprint(got) == tt.want; !ok && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %q, %v; want %s", what, got, err, tt.want)
		}
	}
}

// FuzzPage reads a page with each encoding, behind a dictionary if there is one: it has its values, or is ErrCorrupt.
func FuzzPage(f *testing.F) {
	f.Add(byte(physicalInt32), byte(encodingPlain), byte(0), uint16(2), []byte(nil), append(plain32(1), plain32(2)...))
	f.Add(byte(physicalBytes), byte(encodingDictionary), byte(optional), uint16(3), plainText("x"), append(plain32(2), 3<<1, 1, 0, 3<<1))
	f.Add(byte(physicalBoolean), byte(encodingRLE), byte(repeated), uint16(2), []byte(nil), append(append(plain32(2), 2<<1, 0), 2, 0, 0, 0, 2<<1, 1, 2, 0, 0, 0, 2<<1, 1))
	f.Add(byte(physicalFixed), byte(encodingSplit), byte(4), uint16(2), []byte(nil), []byte("adbecf"))
	f.Add(byte(physicalInt64), byte(encodingDelta), byte(4), uint16(2), []byte(nil), packDeltas(1, 2))
	f.Fuzz(func(t *testing.T, physical, encoding, flags byte, values uint16, dictionary, body []byte) {
		v := testLeaf("v", int64(flags%4)%3, int64(physical%8), logicalType{})
		v.length = 3
		h := pageHeader{values: int64(values), encoding: int64(encoding % 10)}
		if flags&4 != 0 {
			h.kind, h.defSize, h.repSize = pageDataV2, int64(flags>>3&3), int64(flags>>5)
		}
		column := testColumn{values: h.values, pages: []testPage{{h, body}}}
		if dictionary != nil {
			d := pageHeader{kind: pageDictionary, values: int64(len(dictionary))}
			if physical%8 == physicalBytes {
				d.values = int64(len(dictionary)) / 5
			} else if size := (&node{physical: v.physical, length: 3}).plainSize(); size > 0 {
				d.values /= size
			}
			column.pages = slices.Insert(column.pages, 0, testPage{d, dictionary})
		}
		file := testFile(int64(values), []schemaElement{testGroup("row", 0, 1, 0), v}, []testColumn{column})
		got, err := scanBytes(file, render.Paths{NoKey: true, Value: "v"})
		switch {
		case err != nil && (strings.Contains(err.Error(), "panicked") || !errors.Is(err, ErrCorrupt)):
			t.Error(err)
		case err == nil && v.repetition != repeated && len(got) != int(values):
			t.Errorf("%d rows of %d", len(got), values)
		}
	})
}
