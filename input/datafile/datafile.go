// Package datafile reads files of records without a server, on this machine or in a source. It owns what the commands for
// files know about formats: the type of a file, its header, its records, and their partitions. The commands inspect, verify,
// get and cat of cmd/sequins use it. It prints nothing and escapes nothing.
//
// Records are those that a load would make of the file: package load reads it.
package datafile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
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
	Key() []byte      // until the next call of Next; empty with Options.NoKey
	Deleted() bool    // the record deletes its key
	ValueSize() int64 // in bytes
	WriteValue(w io.Writer) error
	Consumed() int64 // bytes read since the last call, 0 if unknown
	// NullKeys returns the number of records that Next has left out because their key is null.
	NullKeys() int64

	// Get writes the value of a key to w, and reports whether there is one. The last record of a key
	// counts. It passes the number of bytes read since the last call to read.
	Get(ctx context.Context, key []byte, w io.Writer, read func(bytes int64)) (bool, error)
	// Verify checks everything that the format allows, and returns the number of records. It calls read as Get does.
	Verify(ctx context.Context, read func(bytes int64)) (records int64, err error)

	// Place returns the partition of the file and the number of partitions, as a load determines them: a
	// block contains them; for other files they are the number in the name, or the position among the
	// data files of the version.
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

// The formats.
const (
	Block        Kind = "block"
	SequenceFile Kind = "SequenceFile"
	SparkeyLog   Kind = "Sparkey log"
	Avro         Kind = "Avro"
	Parquet      Kind = "Parquet"
	Empty        Kind = "empty file" // of 0 bytes: a part without records in a version of any format
	Unknown      Kind = ""
)

// HasFields reports whether records of the format have fields, of which one is the key.
func (k Kind) HasFields() bool { return k == Avro || k == Parquet }

const blockSuffix = ".block"

// ErrFormat is wrapped by the error for a file of an unknown format.
var ErrFormat = errors.New("is neither a block, nor a SequenceFile, Sparkey log, Avro or Parquet file")

// Options select what is read of files whose records have fields.
type Options struct {
	// Fields are the key and the value. Without a key, and with NoKey, keys are empty.
	Fields load.Fields
	// PartitionColumns adds the columns in the names of directories to the values.
	PartitionColumns bool
}

// Open opens a file of records.
func Open(at At, o Options) (File, error) {
	kind, err := at.Sniff()
	if err != nil {
		return nil, err
	}
	if kind == Block || kind == Unknown {
		return openBlock(at, kind)
	}
	return openScanned(at, kind, o)
}

// Sniff returns the format of a file by its name and first bytes. A block is recognized only by its
// end: Unknown may be one.
func (a At) Sniff() (Kind, error) {
	if strings.HasSuffix(a.name, blockSuffix) {
		return Block, nil
	}
	if a.Size == 0 && !NoRecords(path.Base(a.name)) {
		return Empty, nil
	}
	f, err := a.open(0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	switch text := string(head[:]); {
	case strings.HasPrefix(text, sequencefile.Magic):
		return SequenceFile, nil
	case binary.LittleEndian.Uint32(head[:]) == sparkey.Magic:
		return SparkeyLog, nil
	case text == avro.Magic:
		return Avro, nil
	case text == parquet.Magic || text == parquet.MagicEncrypted:
		return Parquet, nil
	}
	return Unknown, nil
}

// ofStore matches the names of files of a local store that are no blocks: of blocks, those being written or set aside.
var ofStore = regexp.MustCompile(`^((MANIFEST|BLOCKS|STATE)\.json(\.\d+\.tmp)?|\d{5,}\.block(\.\d+\.tmp|\.corrupt-\d+)|sequins\.lock|self_assigned_id)$`)

// NoRecords reports whether a file of this name, which is not hidden, has no records and is not read by a load: an index, or
// a file of a local store.
func NoRecords(name string) bool { return load.IsLogIndex(name) || ofStore.MatchString(name) }

// openBlock opens a block, or what may be one.
func openBlock(at At, kind Kind) (File, error) {
	b := &block{closer: io.NopCloser(nil)}
	var err error
	if at.local != "" {
		b.r, err = blocks.Open(at.local)
	} else {
		file := at.readerAt()
		b.closer = file
		b.r, err = blocks.NewReader(file, at.Size, at.Path)
	}
	if err != nil {
		err = errors.Join(err, b.closer.Close())
		if kind == Unknown && errors.Is(err, blocks.ErrCorrupt) {
			err = fmt.Errorf("%s %w", at.Path, ErrFormat)
		}
		return nil, err
	}
	b.Iterator = b.r.Iter(nil, nil)
	return b, nil
}
