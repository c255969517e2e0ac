package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"sequins/blocks/internal/file"
	"sequins/blocks/internal/filter"
	"sequins/blocks/internal/fsst"
	"sequins/blocks/internal/index"
)

// Reader answers from one block. It is safe for concurrent use until it is closed; nothing that
// it returned may be used after that.
type Reader struct {
	name  string
	size  int64
	at    io.ReaderAt
	file  *file.File // nil where the block is read through at alone
	data  []byte     // the file's map; nil if it has none
	index *index.Index
	props Properties

	tables []symbolTable // of a block whose records are encoded

	filter  *filter.Filter
	footer  footer
	trusted trustedPages           // of a block that is mapped: its pages, then the footer, the chunks of its filter, and those of large values
	held    atomic.Pointer[[]byte] // the pages of a small block; nil if they are read from the file
	reads   chan struct{}          // one for each read of the disk that has not ended
}

// Scratch is the memory that one caller at a time lends to [Reader.Get]; it grows to a page of
// the block and is reused. The zero value is ready.
type Scratch struct {
	stored, raw []byte
	value       []byte // copied out of the map
	end         [len(magic)]byte
	missed      bool // the last key was absent, as the next one may be
	reads       uint64
}

// Reads is how many pages have been read from files with this Scratch, and not
// found in memory, since it was made.
func (s *Scratch) Reads() uint64 { return s.reads }

// Open opens the block at path and checks its index, filter and properties, all of which is read from the file. Its
// pages are checked as they are read. Damage is ErrCorrupt.
//
// Of a block of up to 64 KiB nothing stays open: its pages are kept on the heap from the first read on, up to 128 MiB
// for all blocks. Others are mapped as far as the kernel allows, and their files stay open up to a quarter of what the
// process may open; others are opened for each read.
func Open(path string) (*Reader, error) {
	f, err := file.Open(path)
	if changed := (*file.ChangedError)(nil); errors.As(err, &changed) {
		err = &CorruptError{Path: path, Page: -1, Reason: changed.Reason}
	}
	if err != nil {
		return nil, err
	}
	r := &Reader{name: path, size: f.Size()}
	if err := r.open(f); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open reads all of a block but its pages, and decides how these will be read.
func (r *Reader) open(f *file.File) error {
	r.at, r.file, r.reads = f, f, make(chan struct{}, maxBlockReads)
	if err := r.load(); err != nil {
		return err
	}
	if r.size <= maxSmall {
		return r.file.Drop()
	}
	if err := r.file.Keep(); err != nil {
		return err
	}
	if r.file.Data() == nil {
		return nil
	}
	r.data = r.file.Data()
	r.trusted = make(trustedPages, r.valueBit(r.footer.index.offset)/64+1)
	if !r.filter.OnHeap() {
		section := r.footer.filter
		r.filter.SetMap(r.data[section.offset : section.offset+section.length])
		for i := range r.filter.Chunks() { // they have just been read
			r.trusted.set(r.chunkBit(i))
		}
	}
	return nil
}

// NewReader reads a block of size bytes through r; name stands in errors. Pages are never mapped, and the filter is
// kept on the heap.
func NewReader(r io.ReaderAt, size int64, name string) (*Reader, error) {
	b := &Reader{name: name, size: size, at: r, reads: make(chan struct{}, maxBlockReads)}
	if err := b.load(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// corrupt says where the block is damaged. Whatever has been trusted of it is verified again at its next use.
func (r *Reader) corrupt(page int, off int64, reason error) error {
	r.trusted.clearAll()
	return &CorruptError{Path: r.name, Page: page, Offset: off, Reason: reason.Error()}
}

// broken is corrupt for a file that ends too early, and otherwise the error of the disk.
func (r *Reader) broken(page int, off int64, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return r.corrupt(page, off, errors.New("the file ends within it"))
	}
	if changed := (*file.ChangedError)(nil); errors.As(err, &changed) {
		return r.corrupt(-1, changed.Offset, changed)
	}
	return fmt.Errorf("%s: reading at offset %d: %w", r.name, off, err)
}

// Get looks key up. Damage is ErrCorrupt, and too many reads of a disk that does not answer ErrBusy; a key that is not
// there is no error. The value is valid until s is used again or the reader is closed.
func (r *Reader) Get(key []byte, s *Scratch) (Value, bool, error) {
	if r.data != nil {
		v, found, err := r.getMapped(key, s)
		if err == nil || !errors.Is(err, errFault) {
			return v, found, err
		}
		r.trusted.clearAll()
	}
	return r.get(key, s, false)
}

// get is Get, through the map as far as it is trusted if mapped is true, and otherwise without it.
//
// A page in memory tells by its fingerprints that a key is not there, and the filter saves reading one that is
// not. Asking the filter as well costs a hit a third of its time, and a miss is answered by it in half the time
// that a page takes: so it goes first while keys are absent.
func (r *Reader) get(key []byte, s *Scratch, mapped bool) (Value, bool, error) {
	hash := xxhash.Sum64(key)
	rest, ok := r.index.CutPrefix(key)
	if !ok {
		return Value{}, false, nil
	}
	asked := s.missed
	if asked {
		if passes, err := r.passes(hash, s, mapped); !passes {
			return Value{}, false, err
		}
	}
	s.missed = false
	i, l := r.index.Page(r.index.Find(rest), hash)
	if i < 0 {
		s.missed = true
		return Value{}, false, nil
	}
	if stored := r.inMemory(i, l, mapped); stored != nil && r.isSearched(l) {
		var start int
		var found bool
		if s.value, start, found, s.missed = appendValue(s.value[:0], stored, key, candidates(stored, hash), r.symbols(i, l.Packed())); found {
			return Value{small: s.value[start:len(s.value):len(s.value)]}, true, nil
		}
		if s.missed {
			return Value{}, false, nil
		}
	}
	if !asked {
		if passes, err := r.passes(hash, s, mapped); !passes {
			s.missed = err == nil
			return Value{}, false, err
		}
	}
	return r.getFrom(i, key, hash, s, mapped)
}

// keep copies a value out of the map: what reads it later does so unguarded.
func (s *Scratch) keep(v []byte, mapped bool) []byte {
	if !mapped {
		return v
	}
	s.value = append(s.value[:0], v...)
	return s.value[:len(v):len(v)]
}

// inMemory returns page i as it lies in memory; nil if it has to be read.
func (r *Reader) inMemory(i int, l index.Location, mapped bool) []byte {
	if mapped && r.trusted.has(i) {
		return r.data[l.Offset() : l.Offset()+int64(l.Length())]
	}
	if held := r.held.Load(); held != nil {
		return (*held)[l.Offset() : l.Offset()+int64(l.Length())]
	}
	return nil
}

// passes asks the filter. It is false for keys that are not in the block, and with an error.
func (r *Reader) passes(hash uint64, s *Scratch, mapped bool) (bool, error) {
	p := r.filter.Locate(hash)
	if passes, known := p.Known(); known {
		return passes, nil
	}
	if r.filter.OnHeap() || mapped && r.trustsFilter(p) {
		return r.filter.Contains(p), nil
	}
	return r.passesFile(p, s)
}

// trustsFilter reports whether the filter may be asked for p through the map.
func (r *Reader) trustsFilter(p filter.Place) bool {
	first, last := r.filter.ChunksOf(p)
	return r.trusted.has(r.chunkBit(first)) && (first == last || r.trusted.has(r.chunkBit(last)))
}

// passesFile is passes for a part of the filter that may not be in memory.
func (r *Reader) passesFile(p filter.Place, s *Scratch) (bool, error) {
	f, start := r.filter, r.footer.filter.offset
	first, last := f.ChunksOf(p)
	from, _ := f.Chunk(first)
	_, to := f.Chunk(last)
	var err error
	s.reads++
	if s.stored, err = r.read(s.stored, start+from, int(to-from)); err != nil {
		return false, r.broken(-1, start+from, err)
	}
	for i := first; i <= last; i++ {
		begin, end := f.Chunk(i)
		if !f.CheckChunk(s.stored[begin-from:end-from], i) {
			return false, r.corrupt(-1, start+begin, errChecksum)
		}
		r.trusted.set(r.chunkBit(i))
	}
	return f.ContainsIn(s.stored, from, p), nil
}

// getFrom is get in page i.
func (r *Reader) getFrom(i int, key []byte, hash uint64, s *Scratch, mapped bool) (Value, bool, error) {
	payload, inMap, err := r.payload(i, s, mapped)
	if err != nil {
		return Value{}, false, err
	}
	if isLarge(payload) {
		return r.getLarge(i, payload, key)
	}
	p, err := r.parsePage(i, payload, s)
	if err == nil {
		var v []byte
		var found bool
		if v, found, err = p.find(key, hash); err == nil {
			return Value{small: s.keep(v, inMap && p.symbols == nil)}, found, nil
		}
	}
	return Value{}, false, r.corrupt(i, r.index.Location(i).Offset(), err)
}

func (r *Reader) getLarge(i int, payload, key []byte) (Value, bool, error) {
	k, v, err := r.parseLarge(i, payload)
	if err != nil {
		return Value{}, false, r.corrupt(i, r.index.Location(i).Offset(), err)
	}
	if !bytes.Equal(k, key) {
		return Value{}, false, nil
	}
	return Value{large: v}, true, nil
}

// parsePage is parsePage for page i.
func (r *Reader) parsePage(i int, payload []byte, s *Scratch) (page, error) {
	return parsePage(payload, r.symbols(i, r.index.Location(i).Packed()), s)
}

// payload returns the payload of page i, its records encoded as they are in the file: from memory where the page is known to be there and to be whole, otherwise
// read and checked, once. inMap says that it lies in the map.
func (r *Reader) payload(i int, s *Scratch, mapped bool) (payload []byte, inMap bool, err error) {
	l := r.index.Location(i)
	stored := r.inMemory(i, l, mapped)
	if stored == nil && r.file != nil && r.size <= maxSmall {
		if err := r.hold(s); errors.Is(err, ErrBusy) {
			return nil, false, r.broken(i, l.Offset(), err)
		}
		stored = r.inMemory(i, l, mapped)
	}
	if stored != nil && r.isSearched(l) {
		return stored[:len(stored)-trailerSize], mapped, nil
	}
	read := stored == nil
	if read {
		s.reads++
		if s.stored, err = r.read(s.stored, l.Offset(), l.Length()); err != nil {
			return nil, false, r.broken(i, l.Offset(), err)
		}
		stored = s.stored
	}
	if payload, err = r.unpackPage(i, stored, s); err != nil {
		return nil, false, r.corrupt(i, l.Offset(), err)
	}
	if read {
		r.trusted.set(i)
	}
	return payload, false, nil
}

// unpackPage checks page i as it lies in the file and returns its payload, in s or in stored.
func (r *Reader) unpackPage(i int, stored []byte, s *Scratch) ([]byte, error) {
	if err := r.checkPage(i, stored); err != nil {
		return nil, err
	}
	return s.unpack(stored)
}

func (r *Reader) checkPage(i int, stored []byte) error {
	if err := checkPacked(stored, uint32(i)); err != nil {
		return err
	}
	want := None
	switch packed := r.index.Location(i).Packed(); {
	case packed && r.tables == nil:
		want = Zstd
	case packed:
		want = FSST
	}
	codec, _, err := storedCodec(stored)
	if err != nil || codec != want || codec == FSST && r.symbols(i, true) == nil {
		return errCodec
	}
	return nil
}

// Properties returns what the block says of itself.
func (r *Reader) Properties() Properties { return r.props }

// Size is the length of the file in bytes.
func (r *Reader) Size() int64 { return r.size }

// Name is the path or name that the reader was opened with.
func (r *Reader) Name() string { return r.name }

// IndexMemory is what the index, the symbols and the tables of the filter take in bytes of memory, on the heap or, from half a megabyte
// on, in a map of their own; the rest of the filter is in the map of the file and not counted.
func (r *Reader) IndexMemory() int64 {
	return r.index.Memory() + r.filter.Memory() + int64(len(r.tables))*int64(unsafe.Sizeof(fsst.Table{}))
}

// FilterSize is the length of the filter in bytes.
func (r *Reader) FilterSize() int64 { return r.footer.filter.length }

// Close gives back the index's memory, and unmaps and closes the file. Nobody may be reading from it or from
// a value of it.
func (r *Reader) Close() error {
	var err error
	if held := r.held.Swap(nil); held != nil {
		heldBytes.Add(-int64(len(*held)))
	}
	if r.index != nil {
		err = r.index.Free()
	}
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}
