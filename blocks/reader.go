package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
)

// Reader answers from one block. It is safe for concurrent use until it is closed; nothing that
// it returned may be used after that.
type Reader struct {
	name  string
	size  int64
	at    io.ReaderAt
	file  *mappedFile // nil where the block is read through at alone
	index *index
	props Properties

	filter  *filter
	footer  footer
	trusted trustedPages
}

// Scratch is the memory that one caller at a time lends to [Reader.Get]; it grows to a page of
// the block and is reused. The zero value is ready.
type Scratch struct {
	stored, raw []byte
	missed      bool // the last key was absent, as the next one may be
	reads       uint64
}

// Reads is how many pages have been read from files with this Scratch, and not
// found in memory, since it was made.
func (s *Scratch) Reads() uint64 { return s.reads }

// Open opens the block at path, maps it into memory and checks its index, filter and properties.
// Its pages are checked as they are read. Damage is ErrCorrupt.
func Open(path string) (*Reader, error) {
	f, err := openMapped(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{name: path, size: f.size, at: f, file: f}
	if err := r.load(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// NewReader reads a block of size bytes through r; name stands in errors. Pages are never mapped.
func NewReader(r io.ReaderAt, size int64, name string) (*Reader, error) {
	b := &Reader{name: name, size: size, at: r}
	if err := b.load(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (r *Reader) load() error {
	if r.size < footerSize {
		return r.corrupt(-1, 0, fmt.Errorf("%d bytes are less than a footer", r.size))
	}
	var err error
	end := r.size - footerSize
	b, err := r.read(nil, end, footerSize)
	if err != nil {
		return r.broken(-1, end, err)
	}
	if r.footer, err = parseFooter(b, r.size); err != nil {
		return r.corrupt(-1, end, err)
	}
	for _, part := range []struct {
		s     section
		parse func([]byte) error
	}{
		{r.footer.properties, func(b []byte) (err error) { r.props, err = parseProperties(b); return }},
		{r.footer.index, func(b []byte) (err error) { r.index, err = parseIndex(b, r.footer.index.offset); return }},
		{r.footer.filter, func(b []byte) (err error) { r.filter, err = parseFilter(b); return }},
	} {
		b, err := r.readSection(part.s)
		if err != nil {
			return r.broken(-1, part.s.offset, err)
		}
		if crc32.Checksum(b, castagnoli) != part.s.crc {
			return r.corrupt(-1, part.s.offset, errChecksum)
		}
		if err := part.parse(b); err != nil {
			return r.corrupt(-1, part.s.offset, err)
		}
	}
	if r.index.pages() != r.props.Pages || r.filter.empty() != (r.props.Records == 0) {
		return r.corrupt(-1, r.footer.properties.offset, errors.New("properties disagree with the index or the filter"))
	}
	if r.file != nil && r.file.data != nil {
		r.trusted = newTrustedPages(r.props.Pages)
	}
	return nil
}

// readSection gives the bytes of a section: the filter's where they lie in the map, since they
// stay in use; the others read, as they are decoded and done with.
func (r *Reader) readSection(s section) ([]byte, error) {
	if r.file != nil && r.file.data != nil && s == r.footer.filter {
		return r.file.data[s.offset : s.offset+s.length], nil
	}
	return r.read(nil, s.offset, int(s.length))
}

// maxReads is how many reads of the disk there are at a time, of all blocks. Each keeps a thread, of which a Go process has
// 10,000 at most and ends if it needs more: without a bound, a disk that hangs would take with it all that is in memory.
const maxReads = 1000

var reading = make(chan struct{}, maxReads)

// read reads n bytes at off into buf, grown as needed. The file's own length has been compared
// with both, so that n is never more than the file holds.
func (r *Reader) read(buf []byte, off int64, n int) ([]byte, error) {
	buf = grow(buf[:0], n)[:n]
	reading <- struct{}{}
	m, err := r.at.ReadAt(buf, off)
	<-reading
	if m == n {
		return buf, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// corrupt says where the block is damaged.
func (r *Reader) corrupt(page int, off int64, reason error) error {
	return &CorruptError{Path: r.name, Page: page, Offset: off, Reason: reason.Error()}
}

// broken is corrupt for a file that ends too early, and otherwise the error of the disk.
func (r *Reader) broken(page int, off int64, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return r.corrupt(page, off, errors.New("the file ends within it"))
	}
	return fmt.Errorf("%s: reading at offset %d: %w", r.name, off, err)
}

// Get looks key up. Damage is ErrCorrupt; a key that is not there is no error. The value is valid
// until s is used again or the reader is closed.
//
// A page in memory tells by its fingerprints that a key is not there, and the filter saves reading one that is
// not. Asking the filter as well costs a hit a third of its time, and a miss is answered by it in half the time
// that a page takes: so it goes first while keys are absent.
func (r *Reader) Get(key []byte, s *Scratch) (Value, bool, error) {
	hash := xxhash.Sum64(key)
	rest, ok := r.index.cutPrefix(key)
	asked := s.missed
	if !ok || asked && !r.filter.contains(hash) {
		return Value{}, false, nil
	}
	s.missed = false
	i := r.index.find(rest)
	l := r.index.entries[i].location
	if r.trusted.has(i) && !l.packed() {
		stored := r.mapped(l)
		start, end, absent := findRecord(stored, key, hash)
		s.missed = absent
		if end > 0 {
			return Value{small: stored[start:end:end]}, true, nil
		}
		if absent {
			return Value{}, false, nil
		}
	}
	if !asked && !r.filter.contains(hash) {
		s.missed = true
		return Value{}, false, nil
	}
	return r.getFrom(i, key, hash, s)
}

// getFrom is Get in page i.
func (r *Reader) getFrom(i int, key []byte, hash uint64, s *Scratch) (Value, bool, error) {
	payload, err := r.payload(i, s)
	if err != nil {
		return Value{}, false, err
	}
	if isLarge(payload) {
		return r.getLarge(i, payload, key)
	}
	p, err := parsePage(payload)
	if err == nil {
		var v []byte
		var found bool
		if v, found, err = p.find(key, hash); err == nil {
			return Value{small: v}, found, nil
		}
	}
	return Value{}, false, r.corrupt(i, r.index.entries[i].location.offset(), err)
}

func (r *Reader) getLarge(i int, payload, key []byte) (Value, bool, error) {
	k, v, err := r.parseLarge(payload)
	if err != nil {
		return Value{}, false, r.corrupt(i, r.index.entries[i].location.offset(), err)
	}
	if !bytes.Equal(k, key) {
		return Value{}, false, nil
	}
	return Value{large: v}, true, nil
}

// payload returns the payload of page i: from the map where the page is known to be in memory
// and to be whole, otherwise read and checked, once.
func (r *Reader) payload(i int, s *Scratch) ([]byte, error) {
	l := r.index.entries[i].location
	var stored []byte
	if r.trusted.has(i) {
		stored = r.mapped(l)
		if !l.packed() {
			return stored[:len(stored)-trailerSize], nil
		}
	} else {
		var err error
		s.reads++
		if s.stored, err = r.read(s.stored, l.offset(), l.length()); err != nil {
			return nil, r.broken(i, l.offset(), err)
		}
		stored = s.stored
	}
	payload, err := r.unpackPage(i, stored, s)
	if err != nil {
		return nil, r.corrupt(i, l.offset(), err)
	}
	r.trusted.set(i)
	return payload, nil
}

// unpackPage checks page i as it lies in the file and returns its payload, in s or in stored.
func (r *Reader) unpackPage(i int, stored []byte, s *Scratch) ([]byte, error) {
	if err := checkPacked(stored, uint32(i)); err != nil {
		return nil, err
	}
	if codec, _, err := storedCodec(stored); err != nil || r.index.entries[i].location.packed() != (codec != None) {
		return nil, errCodec
	}
	return s.unpack(stored)
}

// mapped is a page as it lies in the map.
func (r *Reader) mapped(l location) []byte {
	return r.file.data[l.offset() : l.offset()+int64(l.length())]
}

// Properties returns what the block says of itself.
func (r *Reader) Properties() Properties { return r.props }

// Size is the length of the file in bytes.
func (r *Reader) Size() int64 { return r.size }

// Name is the path or name that the reader was opened with.
func (r *Reader) Name() string { return r.name }

// IndexMemory is what the index takes in bytes of memory, on the heap or, from a megabyte on, in a map of its
// own; the filter is in the map of the file and not counted.
func (r *Reader) IndexMemory() int64 { return r.index.memory() }

// FilterSize is the length of the filter in bytes.
func (r *Reader) FilterSize() int64 { return r.footer.filter.length }

// Close gives back the index's memory, and unmaps and closes the file. Nobody may be reading from it or from
// a value of it.
func (r *Reader) Close() error {
	var err error
	if r.index != nil {
		err = r.index.tables.free()
	}
	if r.file != nil {
		if e := r.file.Close(); !errors.Is(e, os.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}
