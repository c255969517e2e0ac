package sparkey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"sequins/internal/lookahead"
)

// maxBlockLength is how many bytes the length of a block can have.
const maxBlockLength = 5

var (
	// ErrCorrupt is matched (errors.Is) by every error about a damaged or truncated file, or one of another format.
	ErrCorrupt = errors.New("corrupt Sparkey log")
	// ErrUnsupported is matched (errors.Is) by errors about a version or compression of a later Sparkey.
	ErrUnsupported = errors.New("unsupported Sparkey log")
)

// A Reader reads the entries of one log in the order in which they were written. It is not safe for concurrent use.
type Reader struct {
	name string
	file io.LimitedReader // up to the end of the data
	in   lookahead.Reader // of file
	h    Header

	// Of a compressed log:
	block int64  // offset of the last block that was read
	plain []byte // blocks, decompressed; what is behind used is not used yet
	used  int

	key, value []byte
	deleted    bool
	offset     int64

	seen Header // actual counts; compared with h at the end
	err  error  // io.EOF after the last entry
}

// NewReader reads and checks the header of the log in r. name is used in errors. r is read sequentially to its end.
func NewReader(r io.Reader, name string) (*Reader, error) {
	rd := &Reader{name: name, file: io.LimitedReader{R: r, N: headerSize}}
	rd.in.Reset(&rd.file, 0)
	if err := rd.readHeader(); err != nil {
		return nil, err
	}
	rd.file.N = int64(rd.h.DataEnd) - headerSize
	return rd, nil
}

func (r *Reader) compressed() bool { return r.h.Compression != None }

func (r *Reader) readHeader() error {
	whole := r.in.Fill(headerSize)
	b := r.in.Bytes()
	if len(b) >= 4 && binary.LittleEndian.Uint32(b) != Magic {
		return r.corrupt("it does not begin as a Sparkey log does")
	}
	if !whole && r.in.Err() == io.EOF {
		return r.corrupt("it ends in the header, after %d bytes", len(b))
	}
	if !whole {
		return fmt.Errorf("%s: header: %w", r.name, r.in.Err())
	}
	r.h = parseHeader(b)
	if err := r.h.supported(); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	if flaw := r.h.flaw(); flaw != "" {
		return r.corrupt("header: %s", flaw)
	}
	r.in.Skip(headerSize)
	return nil
}

// Header returns what the log says of itself. The numbers in it are proven when Scan has returned false and Err nil.
func (r *Reader) Header() Header { return r.h }

// Key returns the key of the current entry. It is valid until the next call of Scan.
func (r *Reader) Key() []byte { return r.key }

// Value returns the value of the current entry, empty if it is a delete. It is valid until the next call of Scan.
func (r *Reader) Value() []byte { return r.value }

// Deleted reports whether the current entry deletes its key.
func (r *Reader) Deleted() bool { return r.deleted }

// Offset is where the current entry lies in the file, or with compression the block in which it begins.
func (r *Reader) Offset() int64 { return r.offset }

// Err returns what stopped Scan: nil at a clean end, an ErrCorrupt, or the underlying reader's error.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// Close gives back what the Reader holds. It does not close the underlying reader.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = fmt.Errorf("%s: the reader is closed", r.name)
	}
	r.key, r.value, r.plain, r.used = nil, nil, nil, 0
	r.in.Close(r.err)
	return nil
}

// Scan moves to the next entry. It returns false at the end of the log and when something is wrong with it: see Err.
func (r *Reader) Scan() bool {
	r.key, r.value, r.deleted = nil, nil, false
	if r.err == nil {
		r.err = r.next()
	}
	return r.err == nil
}

func (r *Reader) next() error {
	if err := r.fill(1); err == io.EOF {
		return r.finish()
	} else if err != nil {
		return err
	}
	r.offset = r.in.Offset()
	if r.compressed() {
		r.offset = r.block
	}
	a, n, err := r.vlq(0)
	if err != nil {
		return err
	}
	b, m, err := r.vlq(n)
	if err != nil {
		return err
	}
	return r.take(a, b, n+m)
}

// take makes the entry with the lengths a and b, which took n bytes, the current one.
func (r *Reader) take(a, b uint64, n int) error {
	keyLen, valueLen := a-1, b
	r.deleted = a == 0
	if r.deleted {
		keyLen, valueLen = b, 0
	}
	if err := r.checkLengths(keyLen, valueLen); err != nil {
		return err
	}
	size := n + int(keyLen) + int(valueLen)
	if r.compressed() && size > MaxExpanded {
		return r.corrupt("an entry of %d bytes, more than the %d that a compressed one may have", size, MaxExpanded)
	}
	if left := r.left(); !r.compressed() && uint64(size) > left {
		return r.corrupt("an entry of %d bytes, but only %d are left", size, left)
	}
	if err := r.fill(size); err != nil {
		return r.cut(err)
	}
	entry := r.entries()[:size:size]
	r.key, r.value = entry[n:n+int(keyLen):n+int(keyLen)], entry[n+int(keyLen):]
	if r.compressed() {
		r.used += size
	} else {
		r.in.Skip(size)
	}
	if r.deleted {
		r.seen.Deletes++
		r.seen.DeleteSize += uint64(size)
		return nil
	}
	r.seen.Puts++
	r.seen.PutSize += uint64(size)
	r.seen.MaxKeyLen = max(r.seen.MaxKeyLen, keyLen)
	r.seen.MaxValueLen = max(r.seen.MaxValueLen, valueLen)
	return nil
}

func (r *Reader) checkLengths(keyLen, valueLen uint64) error {
	maxKey := r.h.MaxKeyLen
	if r.deleted { // the header's longest key is that of the puts
		maxKey = r.h.DeleteSize
	}
	switch {
	case keyLen > maxKey || keyLen > maxLength:
		return r.corrupt("a key of %d bytes", keyLen)
	case valueLen > r.h.MaxValueLen || valueLen > maxLength:
		return r.corrupt("a value of %d bytes, where the longest has %d", valueLen, r.h.MaxValueLen)
	}
	return nil
}

// finish proves the header's numbers once all entries were read. Bytes after the data end are those of a writer that never closed the log.
func (r *Reader) finish() error {
	r.offset = int64(r.h.DataEnd)
	if _, err := io.ReadFull(r.file.R, make([]byte, 1)); err == nil {
		return r.corrupt("there is more after the end of the data: it was not closed by its writer")
	} else if err != io.EOF {
		return fmt.Errorf("%s: at offset %d: %w", r.name, r.offset, err)
	}
	h, s := &r.h, &r.seen
	if s.Puts != h.Puts || s.Deletes != h.Deletes {
		return r.corrupt("%d puts and %d deletes, but the header has %d and %d", s.Puts, s.Deletes, h.Puts, h.Deletes)
	}
	if s.PutSize != h.PutSize || s.DeleteSize != h.DeleteSize {
		return r.corrupt("%d bytes of puts and %d of deletes, but the header has %d and %d", s.PutSize, s.DeleteSize, h.PutSize, h.DeleteSize)
	}
	if s.MaxKeyLen != h.MaxKeyLen || s.MaxValueLen != h.MaxValueLen {
		return r.corrupt("keys up to %d and values up to %d bytes, but the header has %d and %d", s.MaxKeyLen, s.MaxValueLen, h.MaxKeyLen, h.MaxValueLen)
	}
	return io.EOF
}

// vlq reads a number that begins at bytes after pos, and returns how many bytes it takes.
func (r *Reader) vlq(at int) (uint64, int, error) {
	for {
		v, n := binary.Uvarint(r.entries()[at:])
		if n > 0 {
			return v, n, nil
		}
		if n < 0 {
			return 0, 0, r.corrupt("a length of more than 64 bits")
		}
		if err := r.fill(len(r.entries()) + 1); err != nil {
			return 0, 0, r.cut(err)
		}
	}
}

func (r *Reader) entries() []byte {
	if r.compressed() {
		return r.plain[r.used:]
	}
	return r.in.Bytes()
}

// fill makes n bytes of entries available. It returns io.EOF at the end of the data.
func (r *Reader) fill(n int) error {
	if !r.compressed() && !r.in.Fill(n) {
		return r.ended()
	}
	for len(r.entries()) < n {
		if err := r.nextBlock(); err != nil {
			return err
		}
	}
	return nil
}

// left returns how many bytes there are from what has been used to the end of the data.
func (r *Reader) left() uint64 { return r.h.DataEnd - uint64(r.in.Offset()) }

// nextBlock reads the next block and decompresses it. It returns io.EOF at the end of the data.
func (r *Reader) nextBlock() error {
	r.block = r.in.Offset()
	if !r.in.Fill(maxBlockLength) && r.in.Len() == 0 {
		return r.ended()
	}
	r.offset = r.block
	head := r.in.Bytes()
	v, n := binary.Uvarint(head[:min(len(head), maxBlockLength)])
	if n == 0 && len(head) >= maxBlockLength {
		return r.corrupt("the length of a block has more than 32 bits")
	}
	if n == 0 {
		if err := r.ended(); err != io.EOF {
			return err
		}
		return r.corrupt("it ends in the length of a block")
	}
	r.in.Skip(n)
	if n := uint64(r.h.BlockSize); v > r.left() || v > 64+n+n/6 { // snappy's bound, with a constant for zstd's headers
		return r.corrupt("a block of %d compressed bytes, %d are left", v, r.left())
	}
	size := int(v)
	if !r.in.Fill(size) {
		return r.ended()
	}
	r.plain = r.plain[:copy(r.plain, r.plain[r.used:])]
	r.used = 0
	var err error
	if r.plain, err = decoders[r.h.Compression](r.plain, r.in.Bytes()[:size], int(r.h.BlockSize)); err != nil {
		return r.corrupt("block of %d bytes: %v", size, err)
	}
	r.in.Skip(size)
	return nil
}

// ended returns why no more of the file can be read: io.EOF at the end of the data, an ErrCorrupt if the file ends before, or the
// underlying reader's error.
func (r *Reader) ended() error {
	at := r.in.ReadTo()
	if err := r.in.Err(); err != io.EOF {
		return fmt.Errorf("%s: at offset %d: %w", r.name, at, err)
	}
	if missing := int64(r.h.DataEnd) - at; missing > 0 {
		r.offset = at
		return r.corrupt("it ends %d bytes before the end of the data", missing)
	}
	return io.EOF
}

// cut makes the end of the data within an entry an ErrCorrupt.
func (r *Reader) cut(err error) error {
	if err == io.EOF {
		return r.corrupt("the data ends within an entry")
	}
	return err
}

// corrupt returns an ErrCorrupt with the offset of the entry, or of the block that it lies in.
func (r *Reader) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: at offset %d: %w: %s", r.name, r.offset, ErrCorrupt, fmt.Sprintf(format, args...))
}
