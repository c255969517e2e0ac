package datafile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
)

// reader is the interface of the readers of input formats.
type reader interface {
	Scan() bool
	Key() []byte
	Value() []byte
	Err() error
	Close() error
}

// scanned is a file of one of the input formats.
type scanned struct {
	reader
	kind     Kind
	f        *os.File
	consumed int64 // bytes read since the last call of Consumed
}

func openScanned(path string, kind Kind) (File, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	s := &scanned{kind: kind, f: f}
	if kind == SparkeyLog {
		s.reader, err = sparkey.NewReader(s, path)
	} else {
		s.reader, err = sequencefile.NewReader(s, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// Read reads the file for the reader and counts the bytes.
func (s *scanned) Read(p []byte) (int, error) {
	n, err := s.f.Read(p)
	s.consumed += int64(n)
	return n, err
}

func (s *scanned) Kind() Kind       { return s.kind }
func (s *scanned) Next() bool       { return s.Scan() }
func (s *scanned) ValueSize() int64 { return int64(len(s.Value())) }
func (s *scanned) Close() error     { return errors.Join(s.reader.Close(), s.f.Close()) }

func (s *scanned) Size() int64 {
	info, err := s.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *scanned) Consumed() int64 {
	n := s.consumed
	s.consumed = 0
	return n
}

func (s *scanned) Deleted() bool {
	log, ok := s.reader.(*sparkey.Reader)
	return ok && log.Deleted()
}

func (s *scanned) WriteValue(w io.Writer) error {
	_, err := w.Write(s.Value())
	return err
}

func (s *scanned) Get(key []byte, w io.Writer) (bool, error) {
	found, value := false, []byte(nil)
	for s.Scan() {
		if bytes.Equal(s.Key(), key) {
			found, value = !s.Deleted(), append(value[:0], s.Value()...)
		}
	}
	if err := s.Err(); err != nil || !found {
		return false, err
	}
	_, err := w.Write(value)
	return true, err
}

func (s *scanned) Verify(ctx context.Context, read func(bytes int64)) (records int64, err error) {
	for s.Scan() {
		if records++; records%1024 == 0 {
			read(s.Consumed())
			if ctx.Err() != nil {
				return records, ctx.Err()
			}
		}
	}
	read(s.Consumed())
	return records, s.Err()
}

func (s *scanned) Describe() []Property {
	switch r := s.reader.(type) {
	case *sequencefile.Reader:
		return describeSequenceFile(r.Header())
	case *sparkey.Reader:
		return describeSparkey(r.Header())
	}
	return nil
}

func describeSequenceFile(h sequencefile.Header) []Property {
	found := []Property{
		{"format version", strconv.Itoa(h.Version), nil},
		{"key class", h.KeyClass, nil},
		{"value class", h.ValueClass, nil},
		{"compression", h.Compression.String(), nil},
	}
	if h.Codec != "" {
		found = append(found, Property{"codec", h.Codec, nil})
	}
	for _, name := range slices.Sorted(maps.Keys(h.Metadata)) {
		found = append(found, Property{"metadata", name + " = ", []byte(h.Metadata[name])})
	}
	return found
}

func describeSparkey(h sparkey.Header) []Property {
	found := []Property{
		{"format version", fmt.Sprintf("%d.%d", h.Major, h.Minor), nil},
		{"compression", h.Compression.String(), nil},
	}
	if h.Compression != sparkey.None {
		found = append(found, Property{"compression block", fmt.Sprintf("%d bytes", h.BlockSize), nil})
	}
	return append(found, Property{"longest key", fmt.Sprintf("%d bytes", h.MaxKeyLen), nil},
		Property{"longest value", fmt.Sprintf("%d bytes", h.MaxValueLen), nil})
}

// inVersion returns the name of the file in its version, and the directory of the version. The name of a
// MapFile is that of its directory.
func (s *scanned) inVersion() (dir, name string) {
	dir, name = filepath.Dir(s.f.Name()), filepath.Base(s.f.Name())
	if name == "data" {
		dir, name = filepath.Dir(dir), filepath.Base(dir)
	}
	return dir, name
}

func (s *scanned) Place() (index, n int, known bool) {
	dir, name := s.inVersion()
	entries, err := os.ReadDir(dir)
	if err != nil || source.IsPartition(filepath.Base(dir)) { // the version may have other directories
		return 0, 0, false
	}
	var names []string // ReadDir sorts them
	for _, e := range entries {
		if !source.Hidden(e.Name()) && load.IsLog(e.Name()) == load.IsLog(name) && !load.IsLogIndex(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if s.kind == SparkeyLog {
		return placeLog(name, names)
	}
	index, n = shard.FileIndex(name, slices.Index(names, name)), len(names)
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
	_, name := s.inVersion()
	switch _, err := load.LogPartition(name); {
	case s.kind != SparkeyLog:
		return ""
	case !load.IsLog(name):
		return "a load takes only files named *.spl for Sparkey logs"
	case err != nil:
		return err.Error()
	}
	return ""
}
