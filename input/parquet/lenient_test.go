package parquet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"

	"sequins/internal/render"
	"sequins/test/expect"
)

// twoRows are pages of a column of bytes with the values x and y.
func twoRows() testPage {
	return testPage{pageHeader{values: 2}, append(plainText("x"), plainText("y")...)}
}

// textColumn is a column of bytes.
func textColumn(name string) schemaElement {
	return testLeaf(name, 0, physicalBytes, logicalType{id: logicalString})
}

// Some writers give the root a type. A field with children is a group.
func TestRootWithType(t *testing.T) {
	fields := []schemaElement{{name: "row", leaf: true, physical: physicalInt32, children: 2}, textColumn("k"), textColumn("v")}
	columns := []testColumn{{values: 2, pages: []testPage{twoRows()}}, {values: 2, pages: []testPage{twoRows()}}}
	got, err := scanBytes(testFile(2, fields, columns), render.Paths{Key: "k"})
	if want := `[x={"k":"x","v":"x"} y={"k":"y","v":"y"}]`; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%q, %v; want %s", got, err, want)
	}
}

// A group without fields is left out, as by other readers, wherever it is.
func TestEmptyGroups(t *testing.T) {
	fields := []schemaElement{
		testGroup("row", 0, 7, 0), testGroup("first", 0, 0, 0), textColumn("k"), testGroup("optional", optional, 0, 0),
		testGroup("deep", optional, 1, 0), testGroup("deeper", 0, 0, 0), testGroup("repeated", repeated, 0, 0),
		testGroup("map", 0, 1, logicalMap), testGroup("key_value", repeated, 2, 0), textColumn("key"), testGroup("value", optional, 0, 0),
		testGroup("last", 0, 0, logicalList),
	}
	keys := levelled{maxRep: 1, maxDef: 1}
	keys.add(0, 1, plainText("a"))
	keys.add(1, 1, plainText("b"))
	keys.add(0, 0, nil)
	file := testFile(2, fields, []testColumn{{values: 2, pages: []testPage{twoRows()}}, keys.column(10)})
	got, err := scanBytes(file, render.Paths{Key: "k"})
	if want := `[x={"k":"x","map":["a","b"]} y={"k":"y","map":[]}]`; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%q, %v; want %s", got, err, want)
	}
	refused(t, "no columns", testFile(2, []schemaElement{testGroup("row", 0, 1, 0), testGroup("g", 0, 0, 0)}, nil), "the file has no columns", little)
}

// Behind the last value of a chunk can be bytes or pages without values. If there are more values, the chunk's number of
// values is wrong, and rows would lose elements of their lists.
func TestBehindTheLastValue(t *testing.T) {
	numbers := levelled{maxRep: 1, maxDef: 1}
	for i := range 4 {
		numbers.add(i%2, 1, plain64(int64(i)))
	}
	list := testLeaf("v", repeated, physicalInt64, logicalType{})
	noValues := testPage{pageHeader{}, append(plain32(0), plain32(0)...)}
	for what, tt := range map[string]struct {
		behind [][]byte
		err    error
	}{
		"nothing":                    {},
		"zeros":                      {behind: [][]byte{make([]byte, 100)}},
		"bytes that are no header":   {behind: [][]byte{[]byte("padding\xff\xff\xff")}},
		"one byte":                   {behind: [][]byte{{0x15}}},
		"a page without values":      {behind: [][]byte{noValues.bytes()}},
		"an index":                   {behind: [][]byte{testPage{pageHeader{kind: 1}, []byte("index")}.bytes()}},
		"a page with values":         {behind: [][]byte{numbers.column(2).pages[0].bytes()}, err: errLong},
		"one behind an empty page":   {behind: [][]byte{noValues.bytes(), numbers.column(2).pages[0].bytes()}, err: errLong},
		"a page that is cut off":     {behind: [][]byte{numbers.column(2).pages[0].bytes()[:20]}},
		"bytes behind an empty page": {behind: [][]byte{noValues.bytes(), {1, 2, 3}}},
	} {
		column := numbers.column(10)
		column.behind = slices.Concat(tt.behind...)
		got, err := scanBytes(withValue(list, column), render.Paths{Key: "k", Value: "v"})
		switch {
		case tt.err == nil && (err != nil || fmt.Sprint(got) != "[a=[0,1] b=[2,3]]"):
			t.Errorf("%s: %q, %v", what, got, err)
		case tt.err != nil && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.err.Error())):
			t.Errorf("%s: %q, %v; want %v", what, got, err, tt.err)
		}
	}
}

// Pages without values can be anywhere in a chunk, also without the levels that others have.
func TestPagesWithoutValues(t *testing.T) {
	v := testLeaf("v", optional, physicalBytes, logicalType{})
	values := levelled{maxDef: 1}
	values.add(0, 1, plainText("x"))
	values.add(0, 0, nil)
	pages := values.column(1).pages
	for _, empty := range []testPage{{}, {pageHeader{kind: pageDataV2}, nil}, {pageHeader{}, plain32(0)}} {
		column := testColumn{values: 2, pages: []testPage{empty, pages[0], empty, empty, pages[1], empty}}
		if got, err := scanBytes(withValue(v, column), render.Paths{Key: "k", Value: "v"}); err != nil || fmt.Sprint(got) != "[a=x b=]" {
			t.Errorf("%+v: %q, %v", empty, got, err)
		}
	}
}

// createdBy returns a file whose footer says who made it.
func createdBy(file []byte, writer string) []byte {
	end := len(file) - 8
	n := int(binary.LittleEndian.Uint32(file[end:]))
	b := append(slices.Clone(file[:end-1]), 2<<4|thriftBinary, byte(len(writer))) // without the stop
	b = append(append(b, writer...), thriftStop)
	return append(append(b, plain32(int32(n+2+len(writer)))...), Magic...)
}

// Arrow before 3.0 compressed the values of pages V2 and noted that it had not.
func TestPagesV2OfOldArrow(t *testing.T) {
	body := append(plainText("xxxxxxxxxxxxxxxxxxxxxxxx"), plainText("y")...)
	v := testLeaf("v", optional, physicalBytes, logicalType{})
	levels := []byte{2 << 1, 1}
	page := func(values []byte) []byte {
		return withValue(v, testColumn{codec: codecSnappy, values: 2, pages: []testPage{{pageHeader{
			kind: pageDataV2, values: 2, defSize: 2, valuesUncompressed: true, uncompressed: int64(len(levels) + len(body))}, append(slices.Clone(levels), values...)}}})
	}
	packed := snappy.Encode(nil, body)
	for _, tt := range []struct {
		writer string
		values []byte
		reads  bool
	}{
		{"parquet-cpp version 1.5.1-SNAPSHOT", packed, true},
		{"parquet-cpp-arrow version 3.0.0", body, true},
		{"parquet-cpp-arrow version 3.0.0", packed, false},
		{"", body, true},
	} {
		got, err := scanBytes(createdBy(page(tt.values), tt.writer), render.Paths{Key: "k", Value: "v"})
		if want := "[a=xxxxxxxxxxxxxxxxxxxxxxxx b=y]"; (err == nil && fmt.Sprint(got) == want) != tt.reads {
			t.Errorf("%q, %d bytes: %q, %v", tt.writer, len(tt.values), got, err)
		}
	}
}

// A limit of the schema is named.
func TestDeepSchema(t *testing.T) {
	fields := []schemaElement{testGroup("row", 0, 1, 0)}
	for range maxDepth {
		fields = append(fields, testGroup("g", 0, 1, 0))
	}
	_, err := scanBytes(testFile(0, append(fields, textColumn("k")), []testColumn{{}}), render.Paths{Key: "k"})
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "unsupported Parquet file") || !strings.Contains(err.Error(), "fields are nested more than 100 levels deep") {
		t.Error(err)
	}
}

// The types of fields are what their values are rendered by: all bits set, or 0123456789abcdef as far as the length goes.
func TestTypesOfFields(t *testing.T) {
	leaf := func(physical int64, l logicalType) schemaElement { return testLeaf("v", optional, physical, l) }
	for _, tt := range []struct {
		field schemaElement
		want  string
	}{
		{leaf(physicalBytes, logicalType{}), "[48 49 50 51 52 53 54 55 56 57 97 98]"},
		{leaf(physicalBytes, logicalType{id: logicalString}), "0123456789ab"},
		{leaf(physicalBytes, logicalType{id: logicalEnum}), "0123456789ab"},
		{leaf(physicalBytes, logicalType{id: logicalJSON}), "0123456789ab"},
		{leaf(physicalInt32, logicalType{id: logicalString}), "-1"}, // does not fit
		{leaf(physicalInt32, logicalType{id: -9}), "-1"},
		{leaf(physicalInt32, logicalType{id: logicalTimestamp, unit: unitMicros}), "-1"},
		{leaf(physicalInt32, logicalType{id: logicalTime, unit: unitMicros}), "-1"},
		{leaf(physicalInt64, logicalType{id: logicalTime, unit: unitMillis}), "-1"},
		{leaf(physicalInt64, logicalType{id: logicalDate}), "-1"},
		{leaf(physicalInt64, logicalType{id: logicalInteger, width: 32}), "-1"},
		{leaf(physicalInt32, logicalType{id: logicalDate}), "1969-12-31"},
		{leaf(physicalInt32, logicalType{id: -6}), "1969-12-31"},
		{leaf(physicalInt32, logicalType{id: logicalTime, unit: unitMillis}), "-00:00:00.001"},
		{leaf(physicalInt64, logicalType{id: -8}), "-00:00:00.000001"},
		{leaf(physicalInt64, logicalType{id: logicalTimestamp, unit: unitNanos}), "1969-12-31T23:59:59.999999999"},
		{leaf(physicalInt64, logicalType{id: -10}), "1969-12-31T23:59:59.999999Z"},
		{leaf(physicalInt64, logicalType{id: logicalInteger, width: 64}), "18446744073709551615"},
		{leaf(physicalInt32, logicalType{id: logicalInteger, width: 8, signed: true}), "-1"},
		{leaf(physicalInt32, logicalType{id: -12}), "65535"},
		{leaf(physicalInt32, logicalType{id: -16}), "-1"},
		{leaf(physicalInt64, logicalType{id: logicalDecimal, scale: 2}), "-0.01"},
		{leaf(physicalBytes, logicalType{id: -convertedDecimal, scale: 10}), "1491475489945574404.4330213730"},
		{leaf(physicalBytes, logicalType{id: logicalDecimal, scale: -2}), "[48 49 50 51 52 53 54 55 56 57 97 98]"},
		{leaf(physicalInt96, logicalType{}), "4514435-09-26T14:16:59.141910832Z"},
		{leaf(physicalInt32, logicalType{id: logicalUnknown}), "-1"},
		{schemaElement{name: "v", leaf: true, physical: physicalFixed, length: 12, logical: logicalType{id: -convertedInterval}}, "P858927408M926299444DT1650538.808S"},
		{schemaElement{name: "v", leaf: true, physical: physicalFixed, length: 16, logical: logicalType{id: logicalUUID}}, "30313233-3435-3637-3839-616263646566"},
		{schemaElement{name: "v", leaf: true, physical: physicalFixed, length: 2, logical: logicalType{id: logicalFloat16}}, "0.16210938"},
	} {
		file := withValue(tt.field, testColumn{})
		r, err := NewReader(strings.NewReader(string(file)), int64(len(file)), "file.parquet", render.Paths{NoKey: true})
		if err != nil {
			t.Fatalf("%+v: %v", tt.field, err)
		}
		length := cmp.Or(tt.field.length, 12) // INT96 has 12 bytes
		v := value{bits: math.MaxUint64, bytes: []byte("0123456789abcdef")[:length]}
		if got := fmt.Sprint(r.root.children[1].convert(&v)); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.field, got, tt.want)
		}
	}
}

// What a codec makes of no bytes is not unpacked: Arrow's LZ4 makes a byte of them that LZ4 does not read.
func TestNothingPacked(t *testing.T) {
	v := testLeaf("v", optional, physicalBytes, logicalType{})
	for codec := range pack(t, []byte("x")) {
		page := testPage{pageHeader{kind: pageDataV2, values: 2, defSize: 2, uncompressed: 2}, []byte{2 << 1, 0, 0}}
		got, err := scanBytes(withValue(v, testColumn{codec: codec, values: 2, pages: []testPage{page}}), render.Paths{Key: "k", Value: "v"})
		if err != nil || fmt.Sprint(got) != "[a= b=]" {
			t.Errorf("codec %d: %q, %v", codec, got, err)
		}
	}
}

// A file that Arrow 2.0 wrote, with the codec LZ4 and a column of nulls.
func TestFileOfOldArrow(t *testing.T) {
	raw, err := os.ReadFile("testdata/arrow-2.0-pages-v2-lz4.parquet")
	expect.NoError(t, err)
	got, err := scanBytes(raw, render.Paths{NoKey: true})
	want := []string{
		`={"k":"k0","v":null,"n":null,"b":true,"l":[],"f":0.43713252780338807}`,
		`={"k":"k1","v":"abaaaaaaaabbaabbaaababaaaa","n":null,"b":true,"l":[8],"f":0.5357698835695208}`,
		`={"k":"k2","v":"a","n":null,"b":true,"l":[],"f":0.38590549178160327}`,
		`={"k":"k3","v":"bbabaaab","n":null,"b":false,"l":[1,1,1],"f":0.48359879832129116}`,
		`={"k":"k4","v":null,"n":null,"b":true,"l":[7,7,7],"f":0.07412695825756999}`,
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s, %v", strings.Join(got, "\n"), err)
	}
}
