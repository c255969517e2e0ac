package main

import (
	"bytes"
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
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
)

// dataFile is an open file of records, in any format. The records are read once, sequentially.
type dataFile interface {
	kind() string
	describe(d *description)
	next() bool
	err() error
	key() []byte
	deleted() bool   // the record deletes its key
	size() int64     // in bytes
	consumed() int64 // bytes read since the last call, if known
	valueSize() int64
	writeValue(w io.Writer) error
	// get writes the value of a key to w, and reports whether there is one. The last record of a key
	// counts.
	get(key []byte, w io.Writer) (bool, error)
	// verify checks everything that the format allows, and returns the number of records.
	verify(ctx context.Context, p *progress) (int64, error)
	Close() error
}

// The first bytes of formats that are recognized by them.
var (
	sequenceMagic = []byte("SEQ")
	sparkeyMagic  = binary.LittleEndian.AppendUint32(nil, 0x49b39c95)
	avroMagic     = []byte("Obj\x01")
	parquetMagic  = []byte("PAR1")
)

const blockSuffix = ".block"

// openRegular opens a regular file for reading. Opening other files, such as a FIFO, could block
// forever.
func openRegular(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.Open(path)
}

// errAlien is the error for a file of an unknown format.
var errAlien = errors.New("is neither a block, nor a SequenceFile, nor a Sparkey log")

// sniff returns the format of a file by its name and first bytes: "block", "SequenceFile", "Sparkey
// log", "Avro", "Parquet", or "" for anything else. A block is recognized only by its end.
func sniff(path string) (string, error) {
	if strings.HasSuffix(path, blockSuffix) {
		return "block", nil
	}
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	switch {
	case bytes.HasPrefix(head[:n], sequenceMagic):
		return "SequenceFile", nil
	case bytes.Equal(head[:n], sparkeyMagic):
		return "Sparkey log", nil
	case bytes.Equal(head[:n], avroMagic):
		return "Avro", nil
	case bytes.Equal(head[:n], parquetMagic):
		return "Parquet", nil
	}
	return "", nil
}

// openFile opens a file of records. The directory of a MapFile means its data file.
func openFile(path string) (dataFile, error) {
	if data := filepath.Join(path, "data"); isDir(path) && !isDir(data) {
		if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is a directory, and not that of a MapFile: name a file in it", path)
		}
		path = data
	}
	kind, err := sniff(path)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "SequenceFile", "Sparkey log":
		return openScanned(path, kind)
	case "block":
		return openBlock(path)
	case "Avro", "Parquet":
		return nil, fmt.Errorf("%s %w: it is of format %s", path, errAlien, kind)
	}
	b, err := openBlock(path)
	if errors.Is(err, blocks.ErrCorrupt) {
		return nil, fmt.Errorf("%s %w", path, errAlien)
	}
	return b, err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// blockFile is a block of the local store.
type blockFile struct {
	r  *blocks.Reader
	it *blocks.Iterator
}

func openBlock(path string) (dataFile, error) {
	r, err := blocks.Open(path)
	if err != nil {
		return nil, err
	}
	return &blockFile{r: r, it: r.Iter(nil, nil)}, nil
}

func (b *blockFile) kind() string     { return "block" }
func (b *blockFile) next() bool       { return b.it.Next() }
func (b *blockFile) err() error       { return b.it.Err() }
func (b *blockFile) key() []byte      { return b.it.Key() }
func (b *blockFile) deleted() bool    { return false }
func (b *blockFile) size() int64      { return b.r.Size() }
func (b *blockFile) consumed() int64  { return 0 } // unknown
func (b *blockFile) valueSize() int64 { return b.it.Value().Len() }

func (b *blockFile) writeValue(w io.Writer) error { return writeValue(w, b.it.Value()) }

func writeValue(w io.Writer, v blocks.Value) (err error) {
	if !v.Large() {
		_, err = w.Write(v.Bytes())
		return err
	}
	section := v.Section(0, v.Len())
	defer func() { err = errors.Join(err, section.Close()) }()
	_, err = io.Copy(w, section)
	return err
}

func (b *blockFile) get(key []byte, w io.Writer) (bool, error) {
	var scratch blocks.Scratch
	v, found, err := b.r.Get(key, &scratch)
	if err != nil || !found {
		return false, err
	}
	return true, writeValue(w, v)
}

func (b *blockFile) verify(ctx context.Context, p *progress) (int64, error) {
	return b.r.Properties().Records, b.r.VerifyPaced(ctx, func(bytes int) error {
		p.add(int64(bytes))
		return nil
	})
}

func (b *blockFile) Close() error { return b.r.Close() }

// scanner is the interface of the readers of input formats.
type scanner interface {
	Scan() bool
	Key() []byte
	Value() []byte
	Err() error
	Close() error
}

// scannedFile is a file of one of the input formats.
type scannedFile struct {
	scanner
	name string
	f    *os.File
	read countingReader
}

func openScanned(path, kind string) (dataFile, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	s := &scannedFile{name: kind, f: f, read: countingReader{Reader: f}}
	if kind == "Sparkey log" {
		s.scanner, err = sparkey.NewReader(&s.read, path)
	} else {
		s.scanner, err = sequencefile.NewReader(&s.read, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *scannedFile) kind() string     { return s.name }
func (s *scannedFile) next() bool       { return s.Scan() }
func (s *scannedFile) err() error       { return s.Err() }
func (s *scannedFile) key() []byte      { return s.Key() }
func (s *scannedFile) valueSize() int64 { return int64(len(s.Value())) }

func (s *scannedFile) size() int64 { return fileSize(s.f.Name()) }

func (s *scannedFile) consumed() int64 {
	n := s.read.n
	s.read.n = 0
	return n
}

func (s *scannedFile) deleted() bool {
	log, ok := s.scanner.(*sparkey.Reader)
	return ok && log.Deleted()
}

func (s *scannedFile) writeValue(w io.Writer) error {
	_, err := w.Write(s.Value())
	return err
}

func (s *scannedFile) get(key []byte, w io.Writer) (bool, error) {
	found, value := false, []byte(nil)
	for s.Scan() {
		if bytes.Equal(s.Key(), key) {
			found, value = !s.deleted(), append(value[:0], s.Value()...)
		}
	}
	if err := s.Err(); err != nil || !found {
		return false, err
	}
	_, err := w.Write(value)
	return true, err
}

func (s *scannedFile) verify(ctx context.Context, p *progress) (records int64, err error) {
	for s.Scan() {
		if records++; records%1024 == 0 {
			p.add(s.consumed())
			if ctx.Err() != nil {
				return records, ctx.Err()
			}
		}
	}
	p.add(s.consumed())
	return records, s.Err()
}

// countingReader counts the bytes read.
type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func (s *scannedFile) Close() error { return errors.Join(s.scanner.Close(), s.f.Close()) }
