package parquet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"sequins/internal/render"
)

// A guard hands out what is there, however little is asked for at a time.
func TestGuard(t *testing.T) {
	for _, f := range fixtures(t) {
		raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
		if err != nil {
			t.Fatal(err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Metadata().RowGroups {
			for _, c := range group.Columns {
				for _, size := range []int{16, 17, 100, 1 << 20} {
					guardReads(t, raw, &c.MetaData, size)
				}
			}
		}
	}
}

func guardReads(t *testing.T, raw []byte, chunk *format.ColumnMetaData, size int) {
	t.Helper()
	g, err := newGuard(bytes.NewReader(raw), chunk, int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	start := g.next
	got, err := io.ReadAll(bufio.NewReaderSize(onlyReader{io.NewSectionReader(g, start, g.end-start)}, size))
	if err != nil || !bytes.Equal(got, raw[start:g.end]) {
		t.Errorf("%d bytes at a time: %d bytes of %d, %v", size, len(got), g.end-start, err)
	}
	if g.next != g.end {
		t.Errorf("%d bytes at a time: pages end at %d, and their column at %d", size, g.next, g.end)
	}
}

type onlyReader struct{ io.Reader }

// header is a page header with the given fields, all of them i32.
func header(uncompressed, compressed, kind, values int64) []byte {
	b := binary.AppendVarint([]byte{0x15}, 0)                  // 1: type
	b = binary.AppendVarint(append(b, 0x15), uncompressed)     // 2
	b = binary.AppendVarint(append(b, 0x15), compressed)       // 3
	b = append(b, byte(kind-3)<<4|thriftStruct)                // kind
	b = binary.AppendVarint(append(b, 0x15), values)           // 1: num_values
	return append(b, 0x15, 0, 0x15, 6, 0x15, 6, 0, thriftStop) // 2: PLAIN, 3, 4: RLE
}

// The header of a page says that it is large: this costs an error, and no memory.
func TestHostilePages(t *testing.T) {
	raw := write(t, wide{K: "a"}, wide{K: "b"})
	file, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	at := file.Metadata().RowGroups[0].Columns[0].MetaData.DataPageOffset
	for what, h := range map[string][]byte{
		"large when unpacked":           header(math.MaxInt32, 10, fieldData, 2),
		"larger than its column":        header(10, math.MaxInt32, fieldData, 2),
		"negative":                      header(-1, -1, fieldData, 2),
		"many values":                   header(10, 10, fieldData, math.MaxInt32),
		"many values, V2":               header(10, 10, fieldDataV2, math.MaxInt32),
		"a dictionary with many values": header(10, 10, fieldDictionary, math.MaxInt32),
		"long statistics":               append(header(10, 10, fieldData, 2)[:11], 0x58, 0xff, 0xff, 0xff, 0xff, 0x07),
		"nothing":                       bytes.Repeat([]byte{0xff}, 40),
		"deep":                          bytes.Repeat([]byte{0x1c}, 1000),
	} {
		bad := append(append(bytes.Clone(raw[:at]), h...), raw[at:]...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := scanBytes(bad, render.Paths{Key: "k", Value: "k"})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the page at 4:") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: it took %d bytes", what, n)
		}
	}
}

// A column that would lie outside of the file is not looked for.
func TestHostileColumns(t *testing.T) {
	for _, c := range []format.ColumnMetaData{
		{DataPageOffset: -1, TotalCompressedSize: 1}, {DataPageOffset: 4, TotalCompressedSize: -1},
		{DataPageOffset: 4, TotalCompressedSize: 997}, {DataPageOffset: math.MaxInt64, TotalCompressedSize: math.MaxInt64},
	} {
		if g, err := newGuard(bytes.NewReader(nil), &c, 1000); err == nil {
			t.Errorf("%+v", g)
		}
	}
}

func FuzzPageHeader(f *testing.F) {
	f.Add(header(100, 90, fieldData, 7))
	f.Add(header(100, 90, fieldDataV2, 7))
	f.Add([]byte{0x15, 0, 0x15, 2, 0x15, 2, 0x2c, 0x15, 2, 0x5c, 0x18, 1, 'x', 0x19, 0x18, 1, 'y', 0x1b, 1, 0x88, 1, 'a', 1, 'b', 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parsePageHeader(b)
		if err != nil {
			return
		}
		if h.size <= 0 || h.size > int64(len(b)) {
			t.Errorf("a header of %d bytes in %d", h.size, len(b))
		}
		for n := range h.size { // a part of it is none
			if _, err := parsePageHeader(b[:n]); err != errCutOff {
				t.Errorf("cut off at %d of %d: %v", n, h.size, err)
			}
		}
	})
}
