package load

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sequins/shard"
	"sequins/source"
	"sequins/test/sequencefiles"
)

// Of whatever format a file is and wherever its source fails, the error is the source's; where the file is
// damaged, it is not.
func TestErrSource(t *testing.T) {
	files := map[string][]byte{
		"part-0":     sequenceFile(t, cut(shard.String, 1, keys(500)...)[0].records, sequencefiles.WriterOptions{Compression: sequencefiles.Block}),
		"part-0.spl": sparkeyLog(t, cut(shard.String, 1, keys(500)...)[0].records),
	}
	for _, format := range []string{"avro-deflate", "parquet-snappy"} {
		files[format] = fixtureFile(t, format)
	}
	for name, content := range files {
		w := newWorld(t)
		w.put(name, content)
		opts := Options{Fields: Fields{Key: "id"}}
		plan := check(newLoader(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
		for _, after := range []int{0, 1, len(content) / 2, len(content) - 1} {
			src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser { return breaks(f, after) }}
			err := newLoader(src, w.store, nil, opts).Load(t.Context(), plan, []int{0})
			if !errors.Is(err, ErrSource) || !errors.Is(err, errNetwork) {
				t.Errorf("%s, after %d bytes: %v", name, after, err)
			}
		}
		changed := append([]byte(nil), content...)
		for i := len(content) / 3; i < len(content); i += 3 {
			changed[i] ^= 0x55
		}
		w.put(name, changed)
		plan = check(newLoader(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
		if err := newLoader(w.src, w.store, nil, opts).Load(t.Context(), plan, []int{0}); err == nil || errors.Is(err, ErrSource) {
			t.Errorf("%s, damaged: %v", name, err)
		}
	}
}

// breaks is f until so many bytes of it have been read.
func breaks(f io.ReadCloser, after int) io.ReadCloser {
	return body{ReadCloser: f, read: func(p []byte) (int, error) {
		if after == 0 {
			return 0, errNetwork
		}
		n, err := f.Read(p[:min(len(p), after)])
		after -= n
		return n, err
	}}
}

// Files that are gone, or not what they were, are no errors of the source's; nor is that nobody wants them
// any more.
func TestErrSourceOf(t *testing.T) {
	for err, want := range map[error]bool{
		errNetwork: true, fs.ErrPermission: true, context.DeadlineExceeded: true,
		fs.ErrNotExist: false, source.ErrChanged: false, context.Canceled: false, io.EOF: false, nil: false,
	} {
		got := ofSource(err)
		if errors.Is(got, ErrSource) != want || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	w := newWorld(t)
	if _, err := newLoader(w.src, w.store, nil, Options{}).Plan(t.Context(), "db", "1"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrSource) {
		t.Error(err)
	}
}

// The columns of a Parquet file are read by streams of their own: all of the same file, or none.
func TestParquetReplacedBetweenOpens(t *testing.T) {
	content := parquetFile(t)
	w := newWorld(t)
	w.put("part-0", content)
	opts := Options{Fields: Fields{Key: "ID", Value: "Text"}}
	plan := check(newLoader(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
	opens := 0
	src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
		if opens++; opens == 1 { // for the footer
			w.put("part-0", content)
			past := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(w.root, "db", "1", "part-0"), past, past); err != nil {
				t.Error(err)
			}
		}
		return f
	}}
	err := newLoader(src, w.store, nil, opts).Load(t.Context(), plan, []int{0})
	if !errors.Is(err, source.ErrChanged) || opens != 1 {
		t.Errorf("after %d opens: %v", opens, err)
	}
}

// parquetFile returns a file of 20,000 rows with two columns, ID and Text, each in one page. Its structures are those of
// parquet.thrift in the compact protocol: a byte with the distance of the field's number and its type, and the value.
func parquetFile(t *testing.T) []byte {
	t.Helper()
	const rows = 20_000
	b := []byte("PAR1")
	var schema, chunks []byte
	for _, name := range []string{"ID", "Text"} {
		var page []byte
		for i := range rows {
			v := fmt.Sprintf("%06d", i)
			if name == "Text" {
				v = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
			}
			page = append(binary.LittleEndian.AppendUint32(page, uint32(len(v))), v...)
		}
		schema = append(append(schema, 0x15, 12, 0x25, 0, 0x18, byte(len(name))), name...) // BYTE_ARRAY, REQUIRED, name
		schema = append(schema, 0)
		at := int64(len(b))
		b = varints(b, 0x15, 0, 0x15, int64(len(page)), 0x15, int64(len(page))) // DATA_PAGE, its size twice
		b = append(varints(append(b, 0x2c), 0x15, rows, 0x15, 0, 0x15, 3, 0x15, 3), 0, 0)
		b = append(b, page...)
		chunks = varints(append(chunks, 0x3c), 0x15, 6, 0x35, 0, 0x16, rows, 0x26, int64(len(b))-at, 0x26, at)
		chunks = append(chunks, 0, 0)
	}
	footer := append(varints(nil, 0x15, 1), 0x19, 0x3c, 0x48, 1, 'r', 0x15, 4, 0) // version 1, the root of two columns
	footer = varints(append(footer, schema...), 0x16, rows)
	footer = append(append(footer, 0x19, 0x1c, 0x19, 0x2c), chunks...)
	footer = append(varints(footer, 0x26, rows), 0, 0)
	b = binary.LittleEndian.AppendUint32(append(b, footer...), uint32(len(footer)))
	return append(b, "PAR1"...)
}

// varints appends fields of a Thrift struct, each a head and an integer.
func varints(b []byte, fields ...int64) []byte {
	for i := 0; i < len(fields); i += 2 {
		b = binary.AppendVarint(append(b, byte(fields[i])), fields[i+1])
	}
	return b
}
