package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/internal/render"
	"sequins/test/expect"
	"sequins/test/harness"
)

// mutate returns a file with one of several kinds of damage.
func mutate(r *rand.Rand, raw []byte) []byte {
	b := bytes.Clone(raw)
	at := r.IntN(len(b))
	if r.IntN(2) == 0 { // the footer and page headers are small parts of a file
		at = len(b) - 1 - r.IntN(min(len(b), 1<<10))
	}
	switch r.IntN(5) {
	case 0, 1:
		b[at] ^= 1 << r.IntN(8)
	case 2:
		b[at] = byte(r.Uint32())
	case 3:
		return b[:at]
	default: // a length
		n := [...]uint32{0, 1, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000000}[r.IntN(8)]
		copy(b[at:], binary.LittleEndian.AppendUint32(nil, n))
	}
	return b
}

// A mutated file gives rows or ErrCorrupt, with bounded memory.
func TestMutatedFiles(t *testing.T) {
	files := [][]byte{write(3, wide{K: "x", Bare: []int64{1, 2}}, wide{K: "y"})}
	paths := []render.Paths{{Key: "k"}}
	for _, f := range harness.FixturesOf(t, "parquet") {
		raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
		expect.NoError(t, err)
		files, paths = append(files, raw), append(paths, render.Paths{Key: f.Meta.KeyField, Value: f.Meta.ValueField})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		n := i % len(files)
		bad := mutate(r, files[n])
		var err error
		if took := allocated(func() { _, err = scanBytes(bad, paths[n]) }); took > 64<<20+int64(100*len(bad)) {
			t.Errorf("mutation %d took %d bytes: %v", i, took, err)
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, render.ErrField) && !errors.Is(err, render.ErrNullKey) {
			t.Errorf("mutation %d: %v", i, err)
		}
		if err != nil && strings.Contains(err.Error(), "panicked") {
			t.Errorf("mutation %d: %v", i, err)
		}
	}
}

func FuzzPageHeader(f *testing.F) {
	for _, kind := range []int64{pageData, pageDictionary, pageDataV2} {
		f.Add(testPage{pageHeader{kind: kind, values: 7, hasCRC: true}, nil}.bytes())
	}
	f.Add([]byte{0x15, 0, 0x15, 2, 0x15, 2, 0x2c, 0x15, 2, 0x5c, 0x18, 1, 'x', 0x19, 0x18, 1, 'y', 0x1b, 1, 0x88, 1, 'a', 1, 'b', 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parsePageHeader(b)
		if err != nil {
			return
		}
		if h.size <= 0 || h.size > int64(len(b)) {
			t.Errorf("a header of %d bytes in %d", h.size, len(b))
		}
		for n := range h.size { // a part of a header is not a header
			if _, err := parsePageHeader(b[:n]); err != errCutOff {
				t.Errorf("cut off at %d of %d: %v", n, h.size, err)
			}
		}
	})
}

// FuzzFile reads whole files. The allocation limit depends on the file's size and on the maximum page size.
func FuzzFile(f *testing.F) {
	x := "x"
	f.Add(write(1, wide{K: "x", Bare: []int64{1, 2}, Lists: [][]*string{{&x, nil}, {}}}, wide{K: "y"}))
	f.Add(write(9, wide{K: "x", Map: []entry{{"a", []int32{1, 2}}}}))
	body := append(plainText("x"), plainText("y")...)
	for codec, packed := range pack(f, body) {
		f.Add(bytesPage(codec, testPage{pageHeader{values: 2, uncompressed: int64(len(body))}, packed}))
	}
	f.Add(bytesPage(codecNone, testPage{pageHeader{values: 2, encoding: encodingDeltaBytes}, append(append(packDeltas(0, 1), packDeltas(2, 3)...), "abcde"...)}))
	f.Add(bytesPage(codecNone, testPage{pageHeader{values: 2, encoding: encodingDeltaLength}, append(packDeltas(2, 3), "abcde"...)}))
	for _, name := range []string{"testdata/arrow-2.0-pages-v2-lz4.parquet", "../../testdata/fixtures/parquet-groups/1/part-r-00000.parquet"} {
		b, err := os.ReadFile(name)
		expect.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, paths := range []render.Paths{{NoKey: true}, {Key: "k"}, {Key: "k", Value: "v"}} {
			r, err := NewReader(bytes.NewReader(b), int64(len(b)), "file.parquet", paths)
			if err != nil {
				continue
			}
			r.shared.most = min(r.shared.most, r.shared.held+256<<20)
			for n := 0; r.Scan() && n < 10_000; n++ {
			}
			if err := r.Err(); err != nil && (strings.Contains(err.Error(), "panicked") || !errors.Is(err, ErrCorrupt) && !errors.Is(err, render.ErrNullKey)) {
				t.Error(err)
			}
		}
	})
}
