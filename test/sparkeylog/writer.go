// Package sparkeylog writes Sparkey logs for tests of their reader, as Sparkey's own writers do.
package sparkeylog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"sequins/input/sparkey"
)

const (
	headerSize   = 84 // bytes
	minBlockSize = 10 // bytes: a block has room for the two lengths of an entry
)

// WriterOptions are the choices a log is written with. The zero value is an uncompressed log.
type WriterOptions struct {
	Compression sparkey.Compression
	BlockSize   int    // bytes before compression, 10 to [sparkey.MaxBlockSize]; 4096 if 0. Without meaning if nothing is compressed.
	FileID      uint32 // Sparkey takes a random number; it matters to its index only
}

// A Writer writes one log. The header, which counts what follows, is written over by Close: without it the log reads as damaged.
type Writer struct {
	w   io.WriteSeeker
	out *bufio.Writer
	h   sparkey.Header

	encode  func(dst, src []byte) []byte // nil without compression
	pending []byte                       // entries of the block at hand
	entries uint32                       // that begin in it
	packed  []byte
	err     error // the first; everything after it fails with it
}

var errClosed = errors.New("sparkey: the writer is closed")

// NewWriter begins a log at w's present position, which must be the start of an empty file.
func NewWriter(w io.WriteSeeker, o WriterOptions) (*Writer, error) {
	h := sparkey.Header{Major: 1, FileID: o.FileID, DataEnd: headerSize, Compression: o.Compression}
	if o.Compression != sparkey.None {
		if o.BlockSize == 0 {
			o.BlockSize = 4096
		}
		if o.BlockSize < minBlockSize || o.BlockSize > sparkey.MaxBlockSize {
			return nil, fmt.Errorf("sparkey: a block size of %d, not %d to %d", o.BlockSize, minBlockSize, sparkey.MaxBlockSize)
		}
		h.BlockSize = uint32(o.BlockSize)
	}
	encode, err := newEncoder(o.Compression)
	if err != nil {
		return nil, err
	}
	wr := &Writer{w: w, out: bufio.NewWriter(w), h: h, encode: encode}
	_, err = wr.out.Write(header(&h))
	return wr, err
}

func newEncoder(c sparkey.Compression) (func(dst, src []byte) []byte, error) {
	switch c {
	case sparkey.None:
		return nil, nil
	case sparkey.Snappy:
		return func(dst, src []byte) []byte { return snappy.Encode(dst[:cap(dst)], src) }, nil
	case sparkey.Zstd:
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return func(dst, src []byte) []byte { return e.EncodeAll(src, dst[:0]) }, nil
	}
	return nil, fmt.Errorf("sparkey: unknown %v", c)
}

// Put adds a key with its value.
func (w *Writer) Put(key, value []byte) error {
	size := w.add(uint64(len(key))+1, uint64(len(value)), key, value)
	w.h.Puts++
	w.h.PutSize += size
	w.h.MaxKeyLen = max(w.h.MaxKeyLen, uint64(len(key)))
	w.h.MaxValueLen = max(w.h.MaxValueLen, uint64(len(value)))
	return w.err
}

// Delete adds that the key is no more. As with Sparkey's own Java writer nothing is added where the key is longer than every key put so far:
// the log cannot have it, and Sparkey's readers have no room for a key longer than those that the header speaks of.
func (w *Writer) Delete(key []byte) error {
	if uint64(len(key)) > w.h.MaxKeyLen {
		return w.err
	}
	w.h.DeleteSize += w.add(0, uint64(len(key)), key, nil)
	w.h.Deletes++
	return w.err
}

// add writes one entry and returns its size before compression.
func (w *Writer) add(a, b uint64, key, value []byte) uint64 {
	var lengths [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(lengths[:], a)
	n += binary.PutUvarint(lengths[n:], b)
	size := n + len(key) + len(value)
	if w.encode == nil {
		w.write(lengths[:n])
		w.write(key)
		w.write(value)
		w.h.MaxEntriesPerBlock = 1 // as the Java writer has it
		return uint64(size)
	}
	// The lengths must lie in one block; an entry that fits a block whole is not cut in two.
	room := int(w.h.BlockSize) - len(w.pending)
	if room < n || room < size && size <= int(w.h.BlockSize) {
		w.flush()
	}
	w.entries++
	spilled := w.fill(lengths[:n])
	spilled = w.fill(key) || spilled
	spilled = w.fill(value) || spilled
	if spilled { // the next entry begins a block
		w.flush()
	}
	return uint64(size)
}

// fill adds to the block at hand, and reports whether it had to begin another.
func (w *Writer) fill(b []byte) (spilled bool) {
	for len(b) > 0 {
		room := int(w.h.BlockSize) - len(w.pending)
		if room == 0 {
			w.flush()
			spilled = true
			continue
		}
		n := min(room, len(b))
		w.pending = append(w.pending, b[:n]...)
		b = b[n:]
	}
	return spilled
}

func (w *Writer) flush() {
	if len(w.pending) == 0 {
		return
	}
	w.packed = w.encode(w.packed, w.pending)
	var length [binary.MaxVarintLen64]byte
	w.write(length[:binary.PutUvarint(length[:], uint64(len(w.packed)))])
	w.write(w.packed)
	w.h.MaxEntriesPerBlock = max(w.h.MaxEntriesPerBlock, w.entries)
	w.pending, w.entries = w.pending[:0], 0
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.h.DataEnd += uint64(len(b))
	}
}

// Close writes what is pending and the header. It does not close the underlying writer, which it leaves at the end of the header.
func (w *Writer) Close() error {
	if errors.Is(w.err, errClosed) {
		return nil
	}
	w.flush()
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		_, w.err = w.w.Seek(0, io.SeekStart)
	}
	if w.err == nil {
		_, w.err = w.w.Write(header(&w.h))
	}
	if w.err != nil {
		return w.err
	}
	w.err = errClosed
	return nil
}

// header returns the first bytes of a log.
func header(h *sparkey.Header) (b []byte) {
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	b = u32(u32(u32(u32(b, sparkey.Magic), h.Major), h.Minor), h.FileID)
	b = u64(u64(u64(b, h.Puts), h.Deletes), h.DataEnd)
	b = u64(u64(u64(b, h.MaxKeyLen), h.MaxValueLen), h.DeleteSize)
	b = u32(u32(b, uint32(h.Compression)), h.BlockSize)
	return u32(u64(b, h.PutSize), h.MaxEntriesPerBlock)
}
