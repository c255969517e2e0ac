package load

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"sequins/input/sequencefile"
	"sequins/shard"
	"sequins/source"
)

// Of whatever format a file is and wherever its source fails, the error is the source's; where the file is
// damaged, it is not.
func TestErrSource(t *testing.T) {
	files := map[string][]byte{
		"part-0":     sequenceFile(t, cut(shard.String, 1, keys(500)...)[0].records, sequencefile.WriterOptions{Compression: sequencefile.Block}),
		"part-0.spl": sparkeyLog(t, cut(shard.String, 1, keys(500)...)[0].records),
	}
	for _, format := range []string{"avro-deflate", "parquet-snappy"} {
		files[format] = fixtureFile(t, format)
	}
	for name, content := range files {
		w := newWorld(t)
		w.put(name, content)
		opts := Options{Fields: Fields{Key: "id"}}
		plan := check(New(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
		for _, after := range []int{0, 1, len(content) / 2, len(content) - 1} {
			src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser { return breaks(f, after) }}
			err := New(src, w.store, nil, opts).Load(t.Context(), plan, []int{0}, nil)
			if !errors.Is(err, ErrSource) || !errors.Is(err, errNetwork) {
				t.Errorf("%s, after %d bytes: %v", name, after, err)
			}
		}
		changed := append([]byte(nil), content...)
		for i := len(content) / 3; i < len(content); i += 3 {
			changed[i] ^= 0x55
		}
		w.put(name, changed)
		plan = check(New(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
		if err := New(w.src, w.store, nil, opts).Load(t.Context(), plan, []int{0}, nil); err == nil || errors.Is(err, ErrSource) {
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
		fs.ErrNotExist: false, source.ErrChanged: false, source.ErrCorrupt: false, context.Canceled: false, io.EOF: false, nil: false,
	} {
		got := ofSource(err)
		if errors.Is(got, ErrSource) != want || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	w := newWorld(t)
	if _, err := New(w.src, w.store, nil, Options{}).Plan(t.Context(), "db", "1"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrSource) {
		t.Error(err)
	}
}

// The columns of a Parquet file are read by streams of their own: all of the same file, or none.
func TestParquetReplacedBetweenOpens(t *testing.T) {
	content := parquetFile(t)
	w := newWorld(t)
	w.put("part-0", content)
	opts := Options{Fields: Fields{Key: "ID", Value: "Text"}}
	plan := check(New(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
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
	err := New(src, w.store, nil, opts).Load(t.Context(), plan, []int{0}, nil)
	if !errors.Is(err, source.ErrChanged) || opens != 1 {
		t.Errorf("after %d opens: %v", opens, err)
	}
}

// parquetFile returns a file of 20,000 rows with two columns, ID and Text.
func parquetFile(t *testing.T) []byte {
	t.Helper()
	columns := map[string]func(i int) string{
		"ID":   func(i int) string { return fmt.Sprintf("%06d", i) },
		"Text": func(i int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)})) },
	}
	fields := schema.FieldList{}
	for _, name := range []string{"ID", "Text"} {
		fields = append(fields, schema.NewByteArrayNode(name, parquet.Repetitions.Required, -1))
	}
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, schema.MustGroup(schema.NewGroupNode("row", parquet.Repetitions.Required, fields, -1)))
	g := check(w.AppendRowGroupChecked())(t)
	for _, f := range fields {
		values := make([]parquet.ByteArray, 20_000)
		for i := range values {
			values[i] = parquet.ByteArray(columns[f.Name()](i))
		}
		c := check(g.NextColumn())(t)
		check(c.(*file.ByteArrayColumnChunkWriter).WriteBatch(values, nil, nil))(t)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
