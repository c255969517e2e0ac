package datafile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"sequins/load"
	"sequins/shard"
	"sequins/source"
)

// formats are the kinds of files that are read from start to end, with their names in package load.
var formats = map[Kind]string{
	SequenceFile: load.FormatSequenceFile, SparkeyLog: load.FormatSparkey, Avro: load.FormatAvro, Parquet: load.FormatParquet,
}

// scanned is a file of one of the input formats.
type scanned struct {
	*load.Records
	at   At
	kind Kind
	key  string // the field of the key, "" if the format has none or it is not read

	nulls int64 // records whose key is null
	null  error // of the first of them
}

func openScanned(at At, kind Kind, o Options) (File, error) {
	f := load.File{Format: formats[kind], Name: at.name, Path: at.Path, Size: at.Size, Open: at.open}
	if o.PartitionColumns && kind.HasFields() {
		files, known := at.files()
		if !known || len(files) == 0 {
			files = []source.File{{Name: at.name}}
		}
		var err error
		if f.Columns, err = load.FindColumns(f.Format, o.Fields, files); err != nil {
			return nil, fmt.Errorf("%s: %w", at.Path, err)
		}
	}
	records, err := f.Records(o.Fields)
	if err != nil {
		return nil, err
	}
	s := &scanned{Records: records, at: at, kind: kind}
	if kind.HasFields() {
		s.key = o.Fields.Key
	}
	return s, nil
}

func (s *scanned) Kind() Kind       { return s.kind }
func (s *scanned) Size() int64      { return s.at.Size }
func (s *scanned) ValueSize() int64 { return int64(len(s.Value())) }
func (s *scanned) NullKeys() int64  { return s.nulls }

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

func (s *scanned) WriteValue(w io.Writer) error {
	_, err := w.Write(s.Value())
	return err
}

// each calls f for each record, and read now and then.
func (s *scanned) each(ctx context.Context, read func(bytes int64), f func()) error {
	for n := 0; s.Next(); n++ {
		f()
		if n%1024 == 0 {
			read(s.Consumed())
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	read(s.Consumed())
	return s.Err()
}

func (s *scanned) Get(ctx context.Context, key []byte, w io.Writer, read func(bytes int64)) (bool, error) {
	found, value := false, []byte(nil)
	err := s.each(ctx, read, func() {
		if bytes.Equal(s.Key(), key) {
			found, value = !s.Deleted(), append(value[:0], s.Value()...)
		}
	})
	if err != nil || !found {
		return false, err
	}
	_, err = w.Write(value)
	return true, err
}

func (s *scanned) Verify(ctx context.Context, read func(bytes int64)) (records int64, err error) {
	err = s.each(ctx, read, func() { records++ })
	if err == nil && s.nulls > 0 {
		err = fmt.Errorf("%w; of %d records the key is null, and a load leaves out as many as max_record_errors allows", s.null, s.nulls)
	}
	return records, err
}

func (s *scanned) Place() (index, n int, known bool) {
	files, known := s.at.files()
	if !known || len(source.Columns(s.at.name)) > 0 { // a partition can have a file in each directory
		return 0, 0, false
	}
	var names []string
	for _, f := range files {
		if load.IsLog(f.Name) == load.IsLog(s.at.name) && !load.IsLogIndex(f.Name) {
			names = append(names, f.Name)
		}
	}
	if s.kind == SparkeyLog {
		return placeLog(s.at.name, names)
	}
	index, n = shard.FileIndex(s.at.name, slices.Index(names, s.at.name)), len(names)
	return index, n, index >= 0 && index < n
}

// placeLog is Place for a Sparkey log: a partition can have several logs, or none.
func placeLog(name string, names []string) (index, n int, known bool) {
	if !load.IsLog(name) {
		return 0, 0, false
	}
	for _, other := range names {
		part, err := load.LogPartition(other)
		if err != nil {
			return 0, 0, false
		}
		n = max(n, part+1)
		if other == name {
			index = part
		}
	}
	return index, n, true
}

func (s *scanned) Unloadable() string {
	switch _, err := load.LogPartition(s.at.name); {
	case s.kind != SparkeyLog:
		return ""
	case !load.IsLog(s.at.name):
		return "a load takes only files named *.spl for Sparkey logs"
	case err != nil:
		return err.Error()
	}
	return ""
}
