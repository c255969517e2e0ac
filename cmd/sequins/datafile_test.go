package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/input/sparkey"
	"sequins/load"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
	"sequins/test/sparkeylog"
)

// dataRecord is one record of a file.
type dataRecord struct{ Key, Value string }

// awkward are records with what a terminal, a line or a shell could stumble over, in ascending order.
var awkward = []dataRecord{
	{"", "the empty key"},
	{"\x00\xff", "binary key"},
	{"a/b c", "spaces\tand tabs\nand lines\r"},
	{"back\\slash", "\x1b[2J\x07"},
	{"empty", ""},
	{"large", strings.Repeat("0123456789", 20_000)},
	{"ключ", "значение \xe2\x82 \u202e"},
}

// writeData writes a file and its directory: a block of partition 2 of 3, a SequenceFile with metadata, or a Sparkey log that
// deletes the key "empty" at its end.
func writeData(t testing.TB, format, path string, records ...dataRecord) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	expect.NoError(t, err)
	defer f.Close()
	var add func(key, value []byte) error
	var end func() error
	switch format {
	case load.FormatBlocks:
		w, err := blocks.NewWriter(f, blocks.WriterOptions{Partition: 2, Partitions: 3, Compression: blocks.FSST, BlockSize: 256})
		expect.NoError(t, err)
		add, end = w.Add, func() error { _, err := w.Finish(); return err }
	case load.FormatSequenceFile:
		w, err := sequencefiles.NewWriter(f, sequencefiles.WriterOptions{
			Compression: sequencefiles.Block, Codec: sequencefiles.GzipCodec, Metadata: map[string]string{"made\nby": "a test"}})
		expect.NoError(t, err)
		add, end = w.Append, w.Close
	default:
		w, err := sparkeylog.NewWriter(f, sparkeylog.WriterOptions{Compression: sparkey.Snappy})
		expect.NoError(t, err)
		add, end = w.Put, func() error { return errors.Join(w.Delete([]byte("empty")), w.Close()) }
	}
	for _, r := range records {
		expect.NoError(t, add([]byte(r.Key), []byte(r.Value)))
	}
	expect.NoError(t, end())
}

func openFile(t *testing.T, path string) openData {
	t.Helper()
	f, err := new(fileFlags).open(localFile(path))
	expect.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// The bytes that verify counts are the sizes of the files.
func TestVerifyCountsItsBytes(t *testing.T) {
	dir := t.TempDir()
	for name, format := range map[string]string{"00000.block": load.FormatBlocks, "part-00000": load.FormatSequenceFile, "part-00001.spl": load.FormatSparkey} {
		writeData(t, format, dir+"/"+name, awkward...)
		f, done := openFile(t, dir+"/"+name), int64(0)
		info, err := os.Stat(dir + "/" + name)
		expect.NoError(t, err)
		size := info.Size()
		if _, err := f.Verify(t.Context(), func(bytes int64) { done += bytes }); err != nil {
			t.Fatal(err)
		}
		// Of a block, index, filter and footer were read when it was opened.
		if done < size/2 || done > size || format != load.FormatBlocks && done != size {
			t.Errorf("%s: %d of %d bytes", name, done, size)
		}
	}
}

// A Parquet file with an encrypted footer is one, and is refused for that.
func TestEncryptedParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part-0")
	expect.NoError(t, os.WriteFile(path, []byte("PARE, and what nobody can read\x10\x00\x00\x00PARE"), 0o600))
	if _, err := new(fileFlags).open(localFile(path)); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "the footer is encrypted") {
		t.Error(err)
	}
}

// A file of 0 bytes has no records, as in a load; other files of 0 bytes are not data.
func TestFileOfZeroBytes(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"part-00000": load.FormatSequenceFile, "a.parquet": load.FormatSequenceFile, "a.spi": "", "0.block": load.FormatBlocks} {
		path := filepath.Join(dir, name)
		expect.NoError(t, os.WriteFile(path, nil, 0o600))
		if format, err := localFile(path).format(); format != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", name, format, err)
		}
		if want == load.FormatSequenceFile {
			f := openFile(t, path)
			if n, err := f.Verify(t.Context(), func(int64) {}); n != 0 || err != nil || f.Next() {
				t.Errorf("%s: %d records, %v", name, n, err)
			}
		}
	}
}
