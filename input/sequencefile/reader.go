package sequencefile

import (
	"errors"
	"fmt"
	"io"

	"sequins/internal/lookahead"
	"sequins/internal/unpack"
)

// maxRecord bounds a key and its value together, in bytes: what Java can hold in one array.
const maxRecord = 1<<31 - 1 - 8

// ErrCorrupt is matched (errors.Is) by every error that means that the bytes of a file are not a SequenceFile that this
// package can read: damaged, truncated, or of an unsupported format, version or codec. Errors of the underlying
// io.Reader never match it.
var ErrCorrupt = errors.New("corrupt SequenceFile")

var errClosed = errors.New("sequencefile: reader is closed")

// Reader reads a SequenceFile from its start to its end. It is not safe for concurrent use.
type Reader struct {
	in     lookahead.Reader
	name   string
	header Header

	keys, values wrapping
	decode       unpack.Decoder // nil if nothing is compressed

	key, value []byte
	offset     int64
	err        error

	columns [len(columnNames)]column // RECORD compression: the first is for values. BLOCK: see columnNames.
	left    int                      // BLOCK: records of the current block not read yet
}

// NewReader reads the header from r and returns a Reader for the records that follow. The name is for error messages.
// It returns an ErrCorrupt if r does not give a SequenceFile's header, or the wrapped error of r. It reads ahead, so
// how far r has been read is undefined.
func NewReader(r io.Reader, name string) (*Reader, error) {
	sr := &Reader{name: name}
	sr.in.Reset(r, 0)
	if err := sr.readHeader(); err != nil {
		return nil, err
	}
	sr.keys, sr.values = wrappingOf(sr.header.KeyClass), wrappingOf(sr.header.ValueClass)
	if sr.header.Compression != None {
		sr.decode = codecs[sr.header.Codec]()
	}
	return sr, nil
}

// Header returns the file's header. Its map must not be modified.
func (r *Reader) Header() Header { return r.header }

// Scan reads the next record, which Key and Value then return. It returns false at the end of the file and after the
// first error; see Err. Records are only verified when all have been read and Err is nil: some checksums follow the
// records that they cover.
func (r *Reader) Scan() bool {
	if r.err != nil {
		return false
	}
	if r.header.Compression == Block {
		return r.scanBlock()
	}
	return r.scanRecord()
}

// Key returns the key of the record that Scan has read: the bytes in a BytesWritable or Text, the serialised bytes of
// any other class. They are valid until the next Scan or Close, and must not be changed.
func (r *Reader) Key() []byte { return r.key }

// Value returns the value of the record that Scan has read, on the same terms as Key.
func (r *Reader) Value() []byte { return r.value }

// Err returns why Scan returned false: nil at the end of an undamaged file, an ErrCorrupt, or the wrapped error of
// the underlying reader.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// Offset returns where the current record begins in the file, in bytes; with BLOCK compression, where its block does.
func (r *Reader) Offset() int64 { return r.offset }

// Close releases the Reader's buffers and decoders. It does not close the underlying reader. Scan then fails.
func (r *Reader) Close() error {
	r.in.Close(errClosed)
	r.key, r.value, r.left, r.decode, r.columns = nil, nil, 0, nil, [len(columnNames)]column{}
	return nil
}

// corrupt returns an ErrCorrupt for the record, block or header field at a file offset.
func (r *Reader) corrupt(offset int64, reason string) error {
	return fmt.Errorf("%s: %w at offset %d: %s", r.name, ErrCorrupt, offset, reason)
}

// ended returns the error for a file that ends too early or could not be read. where describes the position.
func (r *Reader) ended(offset int64, where string) error {
	if r.in.Err() != io.EOF {
		return fmt.Errorf("%s: reading SequenceFile at offset %d: %w", r.name, r.in.ReadTo(), r.in.Err())
	}
	return r.corrupt(offset, "the file ends "+where)
}

func (r *Reader) fail(err error) bool {
	r.err = err
	r.key, r.value = nil, nil
	return false
}
