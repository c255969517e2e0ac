package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"

	"sequins/blocks"
	"sequins/input/finished"
	"sequins/load"
)

// openData is an open file of records, in any format. The records are read once, sequentially, and are those that a load would make of the
// file.
type openData interface {
	// Next reads the next record. It returns false at the end and after an error, which Err returns.
	Next() bool
	Err() error
	Key() []byte   // until the next call of Next; empty if Keyless
	Keyless() bool // the records have fields, and none of them is known to be the key
	Deleted() bool // the record deletes its key
	WriteValue(w io.Writer) error
	// LeftOut returns how many records Next has left out, as a load does if max_record_errors allows it, and why the first of them.
	LeftOut() (n int64, first error)

	// Verify checks everything that the format allows, and returns the number of records. It passes the number of bytes read since the
	// last call to read.
	Verify(ctx context.Context, read func(bytes int64)) (records int64, err error)
	Close() error
}

var errFormat = errors.New("is neither a block, nor a SequenceFile, Sparkey log, Avro or Parquet file")

// records opens a file of records of a format. key and value are their fields; without a key, records are read without.
func (d dataFile) records(format, key, value string) (openData, error) {
	if format == load.FormatBlocks {
		file := load.NewRangedFile(d.path, d.size, d.open)
		r, err := blocks.NewReader(file, d.size, d.path)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return &block{r.Iter(nil, nil), r, file, d.want}, nil
	}
	f := load.File{Format: format, Path: d.path, Size: d.size, Open: d.open}
	records, err := f.Records(load.Fields{Key: key, Value: value, NoKey: key == ""})
	if err != nil {
		return nil, err
	}
	return &scanned{records, key == "" && (format == load.FormatAvro || format == load.FormatParquet)}, nil
}

// format returns the format of a file as a load finds it. One of 0 bytes is a part without records, of any format.
func (d dataFile) format() (string, error) {
	f, err := d.open(0)
	if err != nil {
		return "", err
	}
	format, err := load.FormatOf(d.path, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", d.path, err)
	}
	if format == "" && d.size == 0 && !withoutRecords(path.Base(d.path)) {
		return load.FormatSequenceFile, nil
	}
	if format == "" {
		return "", fmt.Errorf("%s %w", d.path, errFormat)
	}
	return format, nil
}

// ofStore matches the names of files of a local store that are no blocks, and of blocks that are being written or set aside.
var ofStore = regexp.MustCompile(`^((MANIFEST|STATE)\.json(\.\d+\.tmp)?|\d{5,}\.block(\.\d+\.tmp|\.corrupt)|sequins\.lock|self_assigned_id)$`)

// withoutRecords reports whether a file of this name, which is not hidden, has no records and is not read by a load: an index, or
// a file of a local store.
func withoutRecords(name string) bool { return load.IsLogIndex(name) || ofStore.MatchString(name) }

// block is a block of a local store or of a finished version.
type block struct {
	*blocks.Iterator
	r    *blocks.Reader
	file io.Closer
	want *finished.Block // see dataFile
}

func (b *block) Deleted() bool           { return false }
func (b *block) Keyless() bool           { return false }
func (b *block) LeftOut() (int64, error) { return 0, nil }
func (b *block) Close() error            { return errors.Join(b.r.Close(), b.file.Close()) }

func (b *block) WriteValue(w io.Writer) error {
	v := b.Value()
	if !v.Large() {
		_, err := w.Write(v.Bytes())
		return err
	}
	section := v.Section(0, v.Len())
	_, err := io.Copy(w, section)
	return errors.Join(err, section.Close())
}

func (b *block) Verify(ctx context.Context, read func(bytes int64)) (int64, error) {
	records := b.r.Properties().Records
	err := b.r.Scrub(ctx, func(bytes int) error {
		read(int64(bytes))
		return nil
	})
	if err == nil {
		err = b.r.CheckHash(ctx)
	}
	if err == nil && b.want != nil {
		if err = b.want.Check(b.r.Hash(), records); err != nil {
			err = fmt.Errorf("%s: %w", b.r.Name(), err)
		}
	}
	return records, err
}

// scanned is a file of one of the input formats.
type scanned struct {
	*load.Records
	keyless bool
}

func (s *scanned) Keyless() bool { return s.keyless }
func (s *scanned) Next() bool    { return s.Scan() }

func (s *scanned) WriteValue(w io.Writer) error {
	_, err := w.Write(s.Value())
	return err
}

func (s *scanned) Verify(_ context.Context, read func(bytes int64)) (records int64, err error) {
	for ; s.Scan(); records++ {
		if records%1024 == 0 {
			read(s.Consumed())
		}
	}
	read(s.Consumed())
	if n, first := s.LeftOut(); s.Err() == nil && n > 0 {
		return records, fmt.Errorf("%w; a load leaves out this record and %d others if max_record_errors allows it", first, n-1)
	}
	return records, s.Err()
}
