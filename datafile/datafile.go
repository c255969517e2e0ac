// Package datafile reads local files of records without a server. It owns what the commands for files know about
// formats: the type of a file, its header, its records, and their partitions. The commands inspect, verify, get and
// cat of cmd/sequins use it. It prints nothing and escapes nothing.
package datafile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sequins/blocks"
	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/load"
)

// File is an open file of records, in any format. The records are read once, sequentially.
type File interface {
	Kind() Kind
	Size() int64          // in bytes
	Describe() []Property // what can be known without reading the records

	// Next reads the next record. It returns false at the end and after an error, which Err returns.
	Next() bool
	Err() error
	Key() []byte      // until the next call of Next
	Deleted() bool    // the record deletes its key
	ValueSize() int64 // in bytes
	WriteValue(w io.Writer) error
	Consumed() int64 // bytes read since the last call, 0 if unknown

	// Get writes the value of a key to w, and reports whether there is one. The last record of a key
	// counts.
	Get(key []byte, w io.Writer) (bool, error)
	// Verify checks everything that the format allows, and returns the number of records. It passes the
	// number of bytes read since the last call to read.
	Verify(ctx context.Context, read func(bytes int64)) (records int64, err error)

	// Place returns the partition of the file and the number of partitions, as a load determines them: a
	// block contains them; for other files they are the number in the name, or the position among the
	// data files of the directory.
	Place() (index, n int, known bool)
	// Unloadable returns the reason why a version with a file of this name cannot be loaded, or "".
	Unloadable() string
	Close() error
}

// Property is a line of a header's description. Data are bytes of any length that follow Value, such as a key.
type Property struct {
	Name, Value string
	Data        []byte
}

// Kind is the format of a file.
type Kind string

// The formats. Open opens the first three.
const (
	Block        Kind = "block"
	SequenceFile Kind = "SequenceFile"
	SparkeyLog   Kind = "Sparkey log"
	Avro         Kind = "Avro"
	Parquet      Kind = "Parquet"
	Unknown      Kind = ""
)

const blockSuffix = ".block"

// errAlien is the error for a file of an unknown format.
var errAlien = errors.New("is neither a block, nor a SequenceFile, nor a Sparkey log")

// Open opens a file of records. The directory of a MapFile means its data file.
func Open(path string) (File, error) {
	if data := filepath.Join(path, "data"); isDir(path) && !isDir(data) {
		if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is a directory, and not that of a MapFile: name a file in it", path)
		}
		path = data
	}
	kind, err := Sniff(path)
	if err != nil {
		return nil, err
	}
	switch kind {
	case SequenceFile, SparkeyLog:
		return openScanned(path, kind)
	case Avro, Parquet:
		return nil, fmt.Errorf("%s %w: it is of format %s", path, errAlien, kind)
	}
	r, err := blocks.Open(path)
	if kind == Unknown && errors.Is(err, blocks.ErrCorrupt) {
		return nil, fmt.Errorf("%s %w", path, errAlien)
	}
	if err != nil {
		return nil, err
	}
	return &block{r.Iter(nil, nil), r}, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Sniff returns the format of a file by its name and first bytes. A block is recognized only by its
// end: Unknown may be one.
func Sniff(path string) (Kind, error) {
	if strings.HasSuffix(path, blockSuffix) {
		return Block, nil
	}
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	switch text := string(head[:]); {
	case strings.HasPrefix(text, sequencefile.Magic):
		return SequenceFile, nil
	case binary.LittleEndian.Uint32(head[:]) == sparkey.Magic:
		return SparkeyLog, nil
	case text == avro.Magic:
		return Avro, nil
	case text == parquet.Magic:
		return Parquet, nil
	}
	return Unknown, nil
}

// openRegular opens a regular file for reading. Opening other files, such as a FIFO, could block
// forever.
func openRegular(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.Open(path)
}

// NoRecords reports whether a file of this name, which is not hidden, has no records: checksums,
// indexes, and other files of a local store.
func NoRecords(name string) bool {
	switch name {
	case "BLOCKS.json", "INPUTS.json", "MANIFEST.json", "SERVED", "sequins.lock":
		return true
	}
	return load.IsLogIndex(name) || strings.HasSuffix(name, ".crc") || strings.HasSuffix(name, ".tmp") ||
		strings.Contains(name, blockSuffix+".corrupt-") // a block that was found damaged
}
