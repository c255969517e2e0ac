package parquet

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"sequins/internal/render"
	"sequins/test/expect"
)

// allocated returns how many bytes do allocates, those that are given back included.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// refused checks that a file is ErrCorrupt for a reason, and that this costs little memory.
func refused(t *testing.T, what string, file []byte, reason string, most int64) {
	t.Helper()
	var got []string
	var err error
	n := allocated(func() { got, err = scanBytes(file, render.Paths{Key: "k", Value: "v"}) })
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "file.parquet") {
		t.Errorf("%s: %.1q, %v; want %q", what, got, err, reason)
	}
	if n > most {
		t.Errorf("%s: it took %d bytes", what, n)
	}
}

// little is the memory that a hostile file may use if nothing has to be decompressed.
const little = 8 << 20

func TestHostileFooters(t *testing.T) {
	claims, err := hex.DecodeString("5041523115021" + "9FCFFFFFFFF0709000000" + "50415231")
	if err != nil || len(claims) != 21 {
		t.Fatal(len(claims), err)
	}
	footer := func(b ...byte) []byte {
		return append(append(append([]byte(Magic), b...), plain32(int32(len(b)))...), Magic...)
	}
	deep := []schemaElement{testGroup("row", 0, 1, 0)}
	for range 200 {
		deep = append(deep, testGroup("g", 0, 1, 0))
	}
	deep = append(deep, testLeaf("k", 0, physicalInt32, logicalType{}))
	long := []schemaElement{testGroup("row", 0, 1, 0), testLeaf(strings.Repeat("k", maxName+1), 0, physicalInt32, logicalType{})}
	for what, file := range map[string][]byte{
		"a list of 2^31 fields":  claims,
		"a long name":            footer(0x48, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"a long list of bytes":   footer(0x79, 0xf3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"nested structs":         footer(bytes.Repeat([]byte{0x1c}, 1<<20)...),
		"nested lists":           footer(append([]byte{0x79}, bytes.Repeat([]byte{0x19}, 1<<20)...)...),
		"nested groups":          testFile(0, deep, []testColumn{{}}),
		"the name of a field":    testFile(0, long, []testColumn{{}}),
		"a root without fields":  testFile(0, deep[:1], nil),
		"fields after the root":  testFile(0, append(keyValue(), testGroup("x", 0, 0, 0)), []testColumn{{}, {}}),
		"no schema":              footer(0),
		"a length beyond itself": append(footer(0)[:5], "\xff\xff\xff\x7fPAR1"...),
	} {
		refused(t, what, file, "", little)
	}
}

// A file with more columns than can be read is not damaged, and the error has both numbers.
func TestTooManyColumns(t *testing.T) {
	for columns, reason := range map[int]string{
		65_001:        "65001 columns would have to be read, and up to ",
		maxFields + 1: "there are 65538 fields in the schema, and up to 65536 are read",
	} {
		fields := []schemaElement{testGroup("row", 0, int64(columns), 0)}
		for i := range columns {
			fields = append(fields, testLeaf(fmt.Sprint("c", i), 0, physicalInt32, logicalType{}))
		}
		_, err := scanBytes(testFile(0, fields, make([]testColumn, columns)), render.Paths{Key: "c0"})
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "unsupported Parquet file") || !strings.Contains(err.Error(), reason) {
			t.Errorf("%d columns: %v", columns, err)
		}
	}
}

// keyValue is a schema of two columns of bytes, k and v.
func keyValue() []schemaElement {
	return []schemaElement{testGroup("row", 0, 2, 0), testLeaf("k", 0, physicalBytes, logicalType{}), testLeaf("v", 0, physicalBytes, logicalType{})}
}

// withValue is a file of two rows, whose column v is the given one.
func withValue(v schemaElement, column testColumn) []byte {
	fields := keyValue()
	fields[2] = v
	keys := levelled{}
	keys.add(0, 0, plainText("a"))
	keys.add(0, 0, plainText("b"))
	return testFile(2, fields, []testColumn{keys.column(10), column})
}

// bytesPage returns a file whose column v has one page.
func bytesPage(codec int64, p testPage) []byte {
	return withValue(testLeaf("v", 0, physicalBytes, logicalType{}), testColumn{codec: codec, values: 2, pages: []testPage{p}})
}

// A page header with a large size causes an error, and no allocation.
func TestHostilePages(t *testing.T) {
	body := append(plainText("x"), plainText("y")...)
	for what, tt := range map[string]struct {
		h      pageHeader
		reason string
	}{
		"large when unpacked":    {pageHeader{values: 2, uncompressed: math.MaxInt32}, "unpacked: there can be"},
		"larger than its column": {pageHeader{values: 2, compressed: math.MaxInt32}, "its column has"},
		"negative":               {pageHeader{values: 2, compressed: -1, uncompressed: -1}, "its column has"},
		"many values":            {pageHeader{values: math.MaxInt32}, "there can be 2"},
		"negative values":        {pageHeader{values: -1}, "there can be 2"},
		"many values, V2":        {pageHeader{kind: pageDataV2, values: math.MaxInt32}, "there can be 2"},
		"a large dictionary":     {pageHeader{kind: pageDictionary, values: math.MaxInt32}, "there can be 2"},
		"long levels":            {pageHeader{kind: pageDataV2, values: 2, defSize: math.MaxInt32, repSize: math.MaxInt32}, "its levels"},
		"negative levels":        {pageHeader{kind: pageDataV2, values: 2, defSize: -1}, "its levels"},
		"a wrong checksum":       {pageHeader{values: 2, hasCRC: true, crc: 1}, "checksum"},
		"an alien encoding":      {pageHeader{values: 2, encoding: 77}, "not supported"},
		"RLE of bytes":           {pageHeader{values: 2, encoding: encodingRLE}, "RLE of BYTE_ARRAY: not supported"},
		"no dictionary":          {pageHeader{values: 2, encoding: encodingDictionary}, "dictionary"},
		"deltas that are none":   {pageHeader{values: 2, encoding: encodingDeltaLength}, "delta"},
	} {
		refused(t, what, bytesPage(codecNone, testPage{tt.h, body}), "column v: ", little)
		refused(t, what, bytesPage(codecNone, testPage{tt.h, body}), tt.reason, little)
	}
	raw := bytesPage(codecNone, testPage{pageHeader{values: 2}, body})
	at := bytes.Index(raw, body) - len(testPage{pageHeader{values: 2}, body}.bytes()) + len(body)
	for what, h := range map[string][]byte{
		"statistics": {0x15, 0, 0x15, 20, 0x15, 20, 0x2c, 0x15, 4, 0x4c, 0x18, 0xff, 0xff, 0xff, 0xff, 0x07},
		"nothing":    bytes.Repeat([]byte{0xff}, 40),
		"deep":       bytes.Repeat([]byte{0x1c}, 1000),
		"no kind":    {0x25, 20, 0x15, 20, 0},
	} {
		refused(t, what, append(append(bytes.Clone(raw[:at]), h...), raw[at:]...), "column v", little)
	}
}

// Errors in dictionaries are found when they are read, or when a page uses them.
func TestHostileDictionaries(t *testing.T) {
	dictionary := testPage{pageHeader{kind: pageDictionary, values: 2}, append(plainText("x"), plainText("y")...)}
	indexes := func(b ...byte) testPage { return testPage{pageHeader{values: 2, encoding: encodingDictionary}, b} }
	alien := dictionary
	alien.header.encoding = encodingDelta
	large := testPage{pageHeader{kind: pageDictionary, values: 20, uncompressed: 100}, dictionary.body}
	for _, tt := range []struct {
		pages  []testPage
		reason string // or the rows
	}{
		{[]testPage{dictionary, indexes(1, 3, 2)}, "[a=x b=y]"},
		{[]testPage{dictionary, indexes(33, 3, 2)}, "more than 32 bits"},
		{[]testPage{dictionary, indexes(8, 1<<1, 2, 1<<1, 0)}, "column v"},
		{[]testPage{dictionary, indexes(1, 1<<1)}, "column v"},
		{[]testPage{dictionary, indexes()}, "column v"},
		{[]testPage{dictionary, dictionary, indexes(1, 3, 2)}, "second dictionary"},
		{[]testPage{indexes(1, 3, 2), dictionary}, "dictionary page must be before"},
		{[]testPage{alien, indexes(1, 3, 2)}, "not supported"},
		{[]testPage{large, indexes(1, 3, 2)}, "decompressed size differs"},
	} {
		file := withValue(testLeaf("v", 0, physicalBytes, logicalType{}), testColumn{values: 2, pages: tt.pages})
		got, err := scanBytes(file, render.Paths{Key: "k", Value: "v"})
		if ok := err == nil && fmt.Sprint(got) == tt.reason; !ok && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("%v: %q, %v; want %s", tt.pages, got, err, tt.reason)
		}
	}
}

// A column of nulls can have a dictionary without values.
func TestEmptyDictionary(t *testing.T) {
	file := withValue(testLeaf("v", optional, physicalInt32, logicalType{}), testColumn{values: 2, pages: []testPage{
		{pageHeader{kind: pageDictionary}, nil}, {pageHeader{}, plain32(0)},
		{pageHeader{values: 2, encoding: encodingDictionary}, append(plain32(2), 2<<1, 0)},
	}})
	if got, err := scanBytes(file, render.Paths{Key: "k", Value: "v"}); err != nil || fmt.Sprint(got) != "[a= b=]" {
		t.Errorf("%q, %v", got, err)
	}
}

// The metadata of a column in a row group is compared with the file.
func TestHostileColumns(t *testing.T) {
	body := append(plainText("x"), plainText("y")...)
	for reason, change := range map[string]func(*chunk){
		"would have":                           func(c *chunk) { c.dataAt = -1 },
		"it would have -1":                     func(c *chunk) { c.compressed = -1 },
		"it would have 1000":                   func(c *chunk) { c.compressed = 1000 },
		"it would have 922":                    func(c *chunk) { c.compressed, c.dataAt = math.MaxInt64, math.MaxInt64 },
		"malformed":                            func(c *chunk) { c.physical = physicalInt32 },
		"not supported":                        func(c *chunk) { c.codec = 9 },
		"LZO: not supported":                   func(c *chunk) { c.codec = codecLZO },
		"it is encrypted: not":                 func(c *chunk) { c.encrypted = true },
		"it is in another file":                func(c *chunk) { c.elsewhere = true },
		"is malformed":                         func(c *chunk) { c.set = false },
		"the column ends before its row group": func(c *chunk) { c.values, c.compressed = 0, 0 },
		"there can be 1":                       func(c *chunk) { c.values = 1 },
		"the page at":                          func(c *chunk) { c.values = 3 },
		"the footer is malformed":              func(c *chunk) { c.values = -1 },
	} {
		file := withValue(testLeaf("v", 0, physicalBytes, logicalType{}), testColumn{values: 2, change: change,
			pages: []testPage{{pageHeader{values: 2}, body}}})
		refused(t, reason, file, reason, little)
	}
	file := bytesPage(codecNone, testPage{pageHeader{values: 2}, body})
	refused(t, "an encrypted footer", append(file[:len(file)-4], MagicEncrypted...), "the footer is encrypted: not supported", little)
}

// pack returns b as each codec packs it.
func pack(t testing.TB, b []byte) map[int64][]byte {
	t.Helper()
	var gz, br bytes.Buffer
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{gzip.NewWriter(&gz), brotli.NewWriter(&br)} {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		expect.NoError(t, w.Close())
	}
	zw, err := zstd.NewWriter(nil)
	expect.NoError(t, err)
	block := make([]byte, lz4.CompressBlockBound(len(b)))
	n, err := lz4.CompressBlock(b, block, nil)
	expect.NoError(t, err)
	hadoop := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	hadoop = append(binary.BigEndian.AppendUint32(hadoop, uint32(n)), block[:n]...)
	return map[int64][]byte{
		codecSnappy: snappy.Encode(nil, b), codecGzip: gz.Bytes(), codecBrotli: br.Bytes(), codecLZ4: hadoop,
		codecZstd: zw.EncodeAll(b, nil), codecLZ4Raw: block[:n],
	}
}

// A page decompresses to exactly the size in its header, or gives an error: no more is allocated.
func TestCodecs(t *testing.T) {
	body := append(plainText(strings.Repeat("x", 8<<20)), plainText("y")...)
	for codec, packed := range pack(t, body) {
		size := int64(len(body))
		got, err := scanBytes(bytesPage(codec, testPage{pageHeader{values: 2, uncompressed: size}, packed}), render.Paths{Key: "k", Value: "v"})
		if err != nil || len(got) != 2 || len(got[0]) != 2+8<<20 || got[1] != "b=y" {
			t.Errorf("codec %d: %d rows, %v", codec, len(got), err)
		}
		what := fmt.Sprintf("codec %d", codec)
		refused(t, what+", larger", bytesPage(codec, testPage{pageHeader{values: 2, uncompressed: 1000}, packed}), "the page at", 16<<20)
		refused(t, what+", smaller", bytesPage(codec, testPage{pageHeader{values: 2, uncompressed: size + 1}, packed}), "the page at", 40<<20)
		refused(t, what+", cut", bytesPage(codec, testPage{pageHeader{values: 2, uncompressed: size}, packed[:len(packed)/2]}), "the page at", 40<<20)
	}
	// a frame of LZ4, as old versions of Arrow wrote it
	small := append(plainText(strings.Repeat("x", 100)), plainText("y")...)
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame)
	if _, err := w.Write(small); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	file := bytesPage(codecLZ4, testPage{pageHeader{values: 2, uncompressed: int64(len(small))}, frame.Bytes()})
	if got, err := scanBytes(file, render.Paths{Key: "k", Value: "v"}); err != nil || len(got) != 2 || got[1] != "b=y" {
		t.Errorf("a frame: %q, %v", got, err)
	}
}

// packDeltas returns numbers as DELTA_BINARY_PACKED, in one block with differences of 64 bits.
func packDeltas(numbers ...int64) []byte {
	b := binary.AppendUvarint(nil, 128)
	b = binary.AppendUvarint(b, 4)
	b = binary.AppendUvarint(b, uint64(len(numbers)))
	if len(numbers) == 0 {
		return append(b, 0)
	}
	b = binary.AppendVarint(b, numbers[0])
	if len(numbers) == 1 {
		return b
	}
	b = append(b, 0, 64, 64, 64, 64)
	for i, n := range numbers[1:] {
		b = binary.LittleEndian.AppendUint64(b, uint64(n-numbers[i]))
	}
	return append(b, make([]byte, 8*(32-(len(numbers)-1)%32))...)
}

// run is DELTA_BINARY_PACKED of n equal numbers.
func run(n, number int64) []byte {
	b := binary.AppendUvarint(nil, 1<<30)
	b = binary.AppendUvarint(b, 1)
	b = binary.AppendUvarint(b, uint64(n))
	return append(binary.AppendVarint(b, number), 0, 0, 0, 0)
}

// The delta encodings, also of FIXED_LEN_BYTE_ARRAY, and with numbers that wrap around.
func TestDeltas(t *testing.T) {
	fixed := schemaElement{name: "v", leaf: true, physical: physicalFixed, length: 3}
	text, number := testLeaf("v", 0, physicalBytes, logicalType{}), testLeaf("v", 0, physicalInt64, logicalType{})
	lengths := func(b []byte, s string) []byte { return append(b, s...) }
	for _, tt := range []struct {
		field    schemaElement
		encoding int64
		body     []byte
		want     string // or the reason of an error
	}{
		{number, encodingDelta, packDeltas(math.MaxInt64, math.MinInt64), "[a=9223372036854775807 b=-9223372036854775808]"},
		{testLeaf("v", 0, physicalInt32, logicalType{}), encodingDelta, packDeltas(1<<31, -1), "[a=-2147483648 b=-1]"},
		{text, encodingDeltaLength, lengths(packDeltas(2, 3), "abcde"), "[a=ab b=cde]"},
		{text, encodingDeltaBytes, lengths(append(packDeltas(0, 1), packDeltas(2, 3)...), "abcde"), "[a=ab b=acde]"},
		{fixed, encodingDeltaBytes, lengths(append(packDeltas(0, 2), packDeltas(3, 1)...), "abcd"), "[a=abc b=abd]"},
		{fixed, encodingDeltaBytes, lengths(append(packDeltas(0, 2), packDeltas(3, 2)...), "abcde"), "4 bytes in a column of 3"},
		{text, encodingDeltaLength, lengths(packDeltas(2, 4), "abcde"), "malformed deltas"},
		{text, encodingDeltaLength, lengths(packDeltas(2, -1), "abcde"), "malformed deltas"},
		{text, encodingDeltaBytes, lengths(append(packDeltas(0, 3), packDeltas(2, 3)...), "abcde"), "malformed deltas"},
		{text, encodingDeltaBytes, lengths(append(packDeltas(1, 1), packDeltas(2, 3)...), "abcde"), "malformed deltas"},
		{text, encodingDeltaBytes, lengths(append(packDeltas(0), packDeltas(2, 3)...), "abcde"), "1 prefixes of 2"},
		{number, encodingDelta, run(1<<31, 1), "values of at most 2"},
		{number, encodingDelta, packDeltas(1), "column v"},
		{text, encodingDelta, packDeltas(1, 2), "not supported"},
		{number, encodingDeltaBytes, packDeltas(1, 2), "not supported"},
		{number, encodingDelta, []byte{0, 4, 2, 0}, "blocks of 0"},
		{number, encodingDelta, []byte{128, 1, 0, 2, 0}, "in 0 parts"},
		{number, encodingDelta, []byte{128, 1, 4, 2, 0, 0, 65, 0, 0, 0}, "malformed deltas"},
		{number, encodingDelta, nil, "malformed deltas"},
	} {
		for _, kind := range []int64{pageData, pageDataV2} {
			file := withValue(tt.field, testColumn{values: 2, pages: []testPage{{pageHeader{kind: kind, values: 2, encoding: tt.encoding}, tt.body}}})
			got, err := scanBytes(file, render.Paths{Key: "k", Value: "v"})
			if ok := err == nil && fmt.Sprint(got) == tt.want; !ok && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%x, encoding %d: %q, %v; want %s", tt.body, tt.encoding, got, err, tt.want)
			}
		}
	}
}

// A few bytes can claim millions of equal values, and values that share a long prefix.
func TestDeltaBombs(t *testing.T) {
	const many = 64 << 20
	field := testLeaf("v", optional, physicalInt64, logicalType{})
	nulls := append(plain32(5), 0x80, 0x80, 0x80, 0x40, 1) // many levels of 1
	file := withValue(field, testColumn{values: many, pages: []testPage{{pageHeader{values: many, encoding: encodingDelta}, append(nulls, run(many, 1)...)}}})
	refused(t, "a run", file, "values of at most 16777216", little)

	text := testLeaf("v", 0, physicalBytes, logicalType{})
	page := func(body []byte) []byte {
		return withValue(text, testColumn{values: 1000, pages: []testPage{{pageHeader{values: 1000, encoding: encodingDeltaBytes}, body}}})
	}
	refused(t, "prefixes of nothing", page(append(run(1000, 1<<20), run(1000, 0)...)), "malformed deltas", little)
	// one value of 1 MiB, and then 999 times the same
	body := append(steps(0, 0, func(i int) int { return 1 - min(i, 1) }), steps(1<<20, -1<<20, func(i int) int { return min(i, 1) })...)
	refused(t, "prefixes", page(append(body, make([]byte, 1<<20)...)), errLarge.Error(), 16<<20)
}

// steps returns the DELTA_BINARY_PACKED encoding of 1,000 numbers in one block: first, and differences that are least
// or, where step is 1, 1 MiB more.
func steps(first, least int64, step func(i int) int) []byte {
	b := binary.AppendUvarint(nil, 1000)
	b = binary.AppendUvarint(b, 1)
	b = binary.AppendUvarint(b, 1000)
	b = binary.AppendVarint(b, first)
	b = append(binary.AppendVarint(b, least), 21)
	packed := make([]byte, 1000*21/8)
	for i := range 999 {
		at := i*21 + 20
		packed[at/8] |= byte(step(i) << (at % 8))
	}
	return append(b, packed...)
}

// A row may have many values, but not without a bound.
func TestRowsAreBounded(t *testing.T) {
	const many = 64 << 20
	rep := append(plain32(7), 1<<1, 0, 0xfe, 0xff, 0xff, 0x3f, 1) // one level of 0, all others 1
	def := append(plain32(5), 0x80, 0x80, 0x80, 0x40, 1)          // elements that are null
	fields := append(keyValue()[:2:2], testGroup("v", 0, 1, logicalList), testGroup("list", repeated, 1, 0), testLeaf("element", optional, physicalInt32, logicalType{}))
	keys := levelled{}
	keys.add(0, 0, plainText("a"))
	file := testFile(1, fields, []testColumn{keys.column(1), {values: many, pages: []testPage{{pageHeader{values: many}, append(rep, def...)}}}})
	refused(t, "a list of nulls", file, "the row has more than", 1<<30)
}

// Pages of all columns are held at the same time: all together are bounded.
func TestPagesAreBounded(t *testing.T) {
	body := make([]byte, 1<<20)
	packed := pack(t, body)[codecZstd]
	fields := []schemaElement{testGroup("row", 0, 100, 0)}
	var columns []testColumn
	for i := range 100 {
		fields = append(fields, testLeaf(fmt.Sprint("c", i), 0, physicalInt64, logicalType{}))
		columns = append(columns, testColumn{codec: codecZstd, values: 1 << 17,
			pages: []testPage{{pageHeader{values: 1 << 17, uncompressed: 1 << 20}, packed}}})
	}
	file := testFile(1<<17, fields, columns)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), "file.parquet", render.Paths{Key: "c0"})
	expect.NoError(t, err)
	r.shared.most = r.shared.held + 10<<20
	if r.Scan() || !errors.Is(r.Err(), ErrCorrupt) || !strings.Contains(r.Err().Error(), "of all columns") {
		t.Errorf("%v", r.Err())
	}
	if got, err := scanBytes(file, render.Paths{Key: "c0", Value: "c99"}); err != nil || len(got) != 1<<17 {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

// A type that this package does not know is rendered as if there were none.
func TestUnknownTypes(t *testing.T) {
	for id, want := range map[int]string{11: "[a=1 b=2]", 13: "[a=1 b=2]", 16: "[a=1 b=2]", 17: "[a=1 b=2]", 18: "[a=1 b=2]", 30: "[a=1 b=2]"} {
		file := withValue(testLeaf("v", 0, physicalInt32, logicalType{id: id}), testColumn{values: 2,
			pages: []testPage{{pageHeader{values: 2}, append(plain32(1), plain32(2)...)}}})
		if got, err := scanBytes(file, render.Paths{Key: "k", Value: "v"}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("type %d: %q, %v", id, got, err)
		}
	}
}
