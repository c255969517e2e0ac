// Package datafiletest writes the files that package datafile reads, for its tests and those of the commands.
package datafiletest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/input/datafile"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
)

// Record is one record of a file.
type Record struct{ Key, Value string }

// Awkward are records with what a terminal, a line or a shell could stumble over, in ascending order.
var Awkward = []Record{
	{"", "the empty key"},
	{"\x00\xff", "binary key"},
	{"a/b c", "spaces\tand tabs\nand lines\r"},
	{"back\\slash", "\x1b[2J\x07"},
	{"empty", ""},
	{"large", strings.Repeat("0123456789", 20_000)},
	{"ключ", "значение \xe2\x82 \u202e"},
}

// Write writes a file and its directory: a block of partition 2 of 3, a SequenceFile with metadata, or a Sparkey log that
// deletes the key "empty" at its end.
func Write(t testing.TB, kind datafile.Kind, path string, records ...Record) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	check(t, err)
	defer f.Close()
	var add func(key, value []byte) error
	var end func() error
	switch kind {
	case datafile.Block:
		w, err := blocks.NewWriter(f, blocks.WriterOptions{Partition: 2, Partitions: 3, Compression: blocks.Snappy, BlockSize: 256})
		check(t, err)
		add, end = w.Add, func() error { _, err := w.Finish(); return err }
	case datafile.SequenceFile:
		w, err := sequencefile.NewWriter(f, sequencefile.WriterOptions{
			Compression: sequencefile.Block, Codec: sequencefile.GzipCodec, Metadata: map[string]string{"made\nby": "a test"}})
		check(t, err)
		add, end = w.Append, w.Close
	default:
		w, err := sparkey.NewWriter(f, sparkey.WriterOptions{Compression: sparkey.Snappy})
		check(t, err)
		add, end = w.Put, func() error { return errors.Join(w.Delete([]byte("empty")), w.Close()) }
	}
	for _, r := range records {
		check(t, add([]byte(r.Key), []byte(r.Value)))
	}
	check(t, end())
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
