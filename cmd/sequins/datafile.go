package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"sequins/blocks"
	"sequins/config"
	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
)

// openData is an open file of records, in any format. The records are read once, sequentially, and are those that a load would make of the
// file.
type openData interface {
	Kind() fileKind
	Describe() []property // what can be known without reading the records

	// Next reads the next record. It returns false at the end and after an error, which Err returns.
	Next() bool
	Err() error
	Key() []byte      // until the next call of Next; empty if Keyless
	Keyless() bool    // the records have fields, and none of them is known to be the key
	Deleted() bool    // the record deletes its key
	ValueSize() int64 // in bytes
	OpenValue() io.ReadCloser
	Consumed() int64 // bytes read since the last call, 0 if unknown
	// NullKeys returns the number of records that Next has left out because their key is null.
	NullKeys() int64

	// Verify checks everything that the format allows, and returns the number of records. It passes the number of bytes read since the
	// last call to read.
	Verify(ctx context.Context, read func(bytes int64)) (records int64, err error)

	// Place returns the partition of the file and the number of partitions, as a load determines them: a
	// block contains them; for other files they are the number in the name, or the position among the
	// data files of the version. It is not known of Sparkey logs.
	Place() (index, n int, known bool)
	Close() error
}

// property is one of a header: a number, a text, bytes such as a key, or a table of texts.
type property struct {
	Name  string
	Value any
}

// fileKind is the format of a file.
type fileKind string

// The formats.
const (
	kindBlock        fileKind = "block"
	kindSequenceFile fileKind = "SequenceFile"
	kindSparkeyLog   fileKind = "Sparkey log"
	kindAvro         fileKind = "Avro"
	kindParquet      fileKind = "Parquet"
	kindEmpty        fileKind = "empty file" // of 0 bytes: a part without records in a version of any format
	kindUnknown      fileKind = ""
)

// HasFields reports whether records of the format have fields, of which one is the key.
func (k fileKind) HasFields() bool { return k == kindAvro || k == kindParquet }

// errFormat is wrapped by the error for a file of an unknown format.
var errFormat = errors.New("is neither a block, nor a SequenceFile, Sparkey log, Avro or Parquet file")

// records opens a file of records. db has the fields that are the key and the value; without a key, records are read without. siblings
// returns the data files of its version, none if they are not known.
func (d dataFile) records(db config.DB, siblings func() []source.File) (openData, error) {
	kind, err := d.sniff()
	if err != nil {
		return nil, err
	}
	if kind == kindBlock || kind == kindUnknown {
		return openBlock(d, kind)
	}
	return openScanned(d, kind, db, siblings)
}

// sniff returns the format of a file by its name and first bytes. A block is recognized only by its
// end: kindUnknown may be one.
func (d dataFile) sniff() (fileKind, error) {
	if strings.HasSuffix(d.name, source.BlockSuffix) {
		return kindBlock, nil
	}
	if d.size == 0 && !withoutRecords(path.Base(d.name)) {
		return kindEmpty, nil
	}
	f, err := d.open(0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("%s: %w", d.path, err)
	}
	switch text := string(head[:]); {
	case strings.HasPrefix(text, sequencefile.Magic):
		return kindSequenceFile, nil
	case binary.LittleEndian.Uint32(head[:]) == sparkey.Magic:
		return kindSparkeyLog, nil
	case text == avro.Magic:
		return kindAvro, nil
	case text == parquet.Magic || text == parquet.MagicEncrypted:
		return kindParquet, nil
	}
	return kindUnknown, nil
}

// ofStore matches the names of files of a local store that are no blocks, and of blocks that are being written or set aside.
var ofStore = regexp.MustCompile(`^((MANIFEST|STATE)\.json(\.\d+\.tmp)?|\d{5,}\.block(\.\d+\.tmp|\.corrupt)|sequins\.lock|self_assigned_id)$`)

// withoutRecords reports whether a file of this name, which is not hidden, has no records and is not read by a load: an index, or
// a file of a local store.
func withoutRecords(name string) bool { return load.IsLogIndex(name) || ofStore.MatchString(name) }

// openBlock opens a block, or what may be one.
func openBlock(at dataFile, kind fileKind) (openData, error) {
	file := load.NewRangedFile(at.path, at.size, at.open)
	r, err := blocks.NewReader(file, at.size, at.path)
	if err != nil {
		err = errors.Join(err, file.Close())
		if kind == kindUnknown && errors.Is(err, blocks.ErrCorrupt) {
			err = fmt.Errorf("%s %w", at.path, errFormat)
		}
		return nil, err
	}
	return &block{r.Iter(nil, nil), r, file}, nil
}

// block is a block of a local store or of a finished version.
type block struct {
	*blocks.Iterator
	r    *blocks.Reader
	file io.Closer
}

func (b *block) Kind() fileKind   { return kindBlock }
func (b *block) Deleted() bool    { return false }
func (b *block) Consumed() int64  { return 0 }
func (b *block) ValueSize() int64 { return b.Value().Len() }
func (b *block) NullKeys() int64  { return 0 }
func (b *block) Keyless() bool    { return false }
func (b *block) Close() error     { return errors.Join(b.r.Close(), b.file.Close()) }

func (b *block) Describe() []property {
	p := b.r.Properties()
	return []property{
		{"partition", fmt.Sprintf("%d of %d", p.Partition, p.Partitions)},
		{"records", p.Records},
		{"bytes of records", p.RawBytes},
		{"bytes on disk", b.r.Size()},
		{"pages", fmt.Sprintf("%d of %d bytes", p.Pages, p.BlockSize)},
		{"compression", p.Compression},
		{"first key", p.FirstKey},
		{"last key", p.LastKey},
		{"content hash", p.ContentHash},
	}
}

func (b *block) Place() (index, n int, known bool) {
	p := b.r.Properties()
	return p.Partition, p.Partitions, p.Partitions > 0
}

func (b *block) OpenValue() io.ReadCloser {
	v := b.Value()
	if !v.Large() {
		return io.NopCloser(bytes.NewReader(v.Bytes()))
	}
	return v.Section(0, v.Len())
}

func (b *block) Verify(ctx context.Context, read func(bytes int64)) (int64, error) {
	return b.r.Properties().Records, b.r.Scrub(ctx, func(bytes int) error {
		read(int64(bytes))
		return nil
	})
}

// formats are the kinds of files that are read from start to end, with their names in package load.
var formats = map[fileKind]string{
	kindSequenceFile: load.FormatSequenceFile, kindSparkeyLog: load.FormatSparkey, kindAvro: load.FormatAvro, kindParquet: load.FormatParquet,
}

// scanned is a file of one of the input formats.
type scanned struct {
	*load.Records
	at       dataFile
	kind     fileKind
	siblings func() []source.File
	key      string // the field of the key, "" if the format has none or it is not read

	nulls int64 // records whose key is null
	null  error // of the first of them
}

func openScanned(at dataFile, kind fileKind, db config.DB, siblings func() []source.File) (openData, error) {
	f := load.File{Format: formats[kind], Name: at.name, Path: at.path, Size: at.size, Open: at.open}
	fields := load.Fields{Key: db.Key, Value: db.Value, NoKey: db.Key == ""}
	if db.PartitionColumns && kind.HasFields() {
		files := siblings()
		if len(files) == 0 {
			files = []source.File{{Name: at.name}}
		}
		var err error
		if f.Columns, err = load.FindColumns(f.Format, fields, files); err != nil {
			return nil, fmt.Errorf("%s: %w", at.path, err)
		}
	}
	records, err := f.Records(fields)
	if err != nil {
		return nil, err
	}
	s := &scanned{Records: records, at: at, kind: kind, siblings: siblings}
	if kind.HasFields() {
		s.key = db.Key
	}
	return s, nil
}

func (s *scanned) Kind() fileKind   { return s.kind }
func (s *scanned) ValueSize() int64 { return int64(len(s.Value())) }
func (s *scanned) NullKeys() int64  { return s.nulls }
func (s *scanned) Keyless() bool    { return s.kind.HasFields() && s.key == "" }

// Next reads the next record that has a key.
func (s *scanned) Next() bool {
	for !s.Scan() {
		err := s.Err()
		if err == nil || !s.Resume() {
			return false
		}
		if s.nulls++; s.nulls == 1 {
			s.null = err
		}
	}
	return true
}

func (s *scanned) OpenValue() io.ReadCloser { return io.NopCloser(bytes.NewReader(s.Value())) }

func (s *scanned) Verify(_ context.Context, read func(bytes int64)) (records int64, err error) {
	for ; s.Next(); records++ {
		if records%1024 == 0 {
			read(s.Consumed())
		}
	}
	read(s.Consumed())
	if err = s.Err(); err == nil && s.nulls > 0 {
		err = fmt.Errorf("%w; of %d records the key is null, and a load leaves out as many as max_record_errors allows", s.null, s.nulls)
	}
	return records, err
}

func (s *scanned) Place() (index, n int, known bool) {
	if s.kind == kindSparkeyLog || len(source.Columns(s.at.name)) > 0 { // a partition can have several logs, or a file in each directory
		return 0, 0, false
	}
	files := s.siblings()
	i := slices.IndexFunc(files, func(f source.File) bool { return f.Name == s.at.name })
	index, n = shard.FileIndex(s.at.name, i), len(files)
	return index, n, index >= 0 && index < n
}

func (s *scanned) Describe() []property {
	switch r := s.Format().(type) {
	case *sequencefile.Reader:
		h := r.Header()
		found := []property{
			{"format version", h.Version}, {"key class", h.KeyClass}, {"value class", h.ValueClass}, {"compression", h.Compression.String()},
		}
		if h.Codec != "" {
			found = append(found, property{"codec", h.Codec})
		}
		if len(h.Metadata) > 0 {
			found = append(found, property{"metadata", h.Metadata})
		}
		return found
	case *sparkey.Reader:
		h := r.Header()
		found := []property{{"format version", fmt.Sprintf("%d.%d", h.Major, h.Minor)}, {"compression", h.Compression.String()}}
		if h.Compression != sparkey.None {
			found = append(found, property{"compression block", fmt.Sprintf("%d bytes", h.BlockSize)})
		}
		return append(found, property{"longest key", fmt.Sprintf("%d bytes", h.MaxKeyLen)}, property{"longest value", fmt.Sprintf("%d bytes", h.MaxValueLen)})
	case *avro.Reader:
		return append([]property{{"codec", r.Codec()}}, s.describeFields(r.Fields(), r.Types())...)
	case *parquet.Reader:
		_, rows := r.Rows()
		return append([]property{{"rows", rows}, {"row groups", r.Groups()}}, s.describeFields(r.Fields(), r.Types())...)
	}
	return nil
}

// describeFields describes the fields of records, and which of them is the key.
func (s *scanned) describeFields(names, types []string) []property {
	var fields []string
	for i, name := range names {
		fields = append(fields, name+" "+types[i])
	}
	found := []property{{"fields", strings.Join(fields, ", ")}}
	if s.key != "" {
		found = append(found, property{"key", s.key})
	}
	return found
}
