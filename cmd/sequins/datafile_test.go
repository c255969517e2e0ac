package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/config"
	"sequins/input/sparkey"
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
func writeData(t testing.TB, kind fileKind, path string, records ...dataRecord) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	expect.NoError(t, err)
	defer f.Close()
	var add func(key, value []byte) error
	var end func() error
	switch kind {
	case kindBlock:
		w, err := blocks.NewWriter(f, blocks.WriterOptions{Partition: 2, Partitions: 3, Compression: blocks.Snappy, BlockSize: 256})
		expect.NoError(t, err)
		add, end = w.Add, func() error { _, err := w.Finish(); return err }
	case kindSequenceFile:
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

func localFile(path string) dataFile { return new(files).local(path, location{}) }

func openFile(t *testing.T, path string) openData {
	t.Helper()
	f, err := (&files{flags: new(fileFlags)}).openFile(localFile(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The bytes that verify counts are the sizes of the files.
func TestVerifyCountsItsBytes(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range map[string]fileKind{"00000.block": kindBlock, "part-00000": kindSequenceFile, "part-00001.spl": kindSparkeyLog} {
		writeData(t, kind, dir+"/"+name, awkward...)
		f, done := openFile(t, dir+"/"+name), int64(0)
		info, err := os.Stat(dir + "/" + name)
		expect.NoError(t, err)
		size := info.Size()
		if _, err := f.Verify(t.Context(), func(bytes int64) { done += bytes }); err != nil || f.Kind() != kind {
			t.Fatal(f.Kind(), err)
		}
		// Of a block, index, filter and footer were read when it was opened.
		if done < size/2 || done > size || kind != kindBlock && done != size {
			t.Errorf("%s: %d of %d bytes", name, done, size)
		}
	}
}

// A Parquet file with an encrypted footer is one, and is refused for that.
func TestEncryptedParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part-0")
	if err := os.WriteFile(path, []byte("PARE, and what nobody can read\x10\x00\x00\x00PARE"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := localFile(path).records(config.DB{}, nil); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "the footer is encrypted") {
		t.Error(err)
	}
}

// A file of 0 bytes has no records, as in a load; other files of 0 bytes are not data.
func TestFileOfZeroBytes(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]fileKind{"part-00000": kindEmpty, "a.parquet": kindEmpty, "a.spi": kindUnknown, "0.block": kindBlock} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if kind, err := localFile(path).sniff(); kind != want || err != nil {
			t.Errorf("%s: %q, %v", name, kind, err)
		}
		if want == kindEmpty {
			f := openFile(t, path)
			if n, err := f.Verify(t.Context(), func(int64) {}); n != 0 || err != nil || f.Describe() != nil || f.Next() {
				t.Errorf("%s: %d records, %v", name, n, err)
			}
		}
	}
}
