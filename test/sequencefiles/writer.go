// Package sequencefiles writes SequenceFiles for tests and benchmarks, as Hadoop's writers do. It shares no code with their
// reader, package sequencefile, which describes the format.
package sequencefiles

import (
	"cmp"
	"crypto/md5"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

const (
	// DefaultSyncInterval is the approximate number of bytes between sync markers, as in Hadoop.
	DefaultSyncInterval = 100 << 10
	// DefaultBlockSize is the number of bytes of keys and values, serialised but not compressed, in a block, as in
	// Hadoop.
	DefaultBlockSize = 1_000_000

	syncSize   = 16
	recordHead = 8 // bytes of the lengths of a record and its key
	// maxRecord bounds a key and its value together, in bytes: what Java can hold in one array.
	maxRecord = 1<<31 - 1 - 8
)

// The classes whose values are wrapped.
const (
	BytesWritable = "org.apache.hadoop.io.BytesWritable"
	Text          = "org.apache.hadoop.io.Text"
)

// Compression is the compression mode of a file.
type Compression uint8

// The modes: nothing is compressed, each value by itself, or keys and values of many records together.
const (
	None Compression = iota
	Record
	Block
)

// ErrClosed is returned by methods of a Writer that is closed.
var ErrClosed = errors.New("sequencefiles: writer is closed")

var errRecordSize = errors.New("sequencefiles: record is too large")

// WriterOptions configures a Writer. The zero value gives an uncompressed file of BytesWritable.
type WriterOptions struct {
	KeyClass   string // Java class name; default BytesWritable. What is neither that nor Text is to be appended serialised.
	ValueClass string // likewise

	Compression Compression
	Codec       string // class name; default DefaultCodec. Must be empty if nothing is compressed.

	Metadata map[string]string

	SyncInterval int // bytes; default DefaultSyncInterval. Not for BLOCK, which has a sync marker in front of each block.
	BlockSize    int // bytes; default DefaultBlockSize. Only for BLOCK.

	// SyncSeed decides the sync marker: equal options, seeds and records make equal files. By default the marker is
	// random, as it should be in files that may be concatenated or searched for it.
	SyncSeed string
}

// Writer writes a SequenceFile of version 6. It is not safe for concurrent use.
type Writer struct {
	w       io.Writer
	opts    WriterOptions // with their defaults
	sync    [syncSize]byte
	encoder encoder // nil if nothing is compressed

	written  int64  // bytes that went to w
	lastSync int64  // in the file: behind the last sync marker
	buf      []byte // of the file, not yet written to w
	value    []byte // RECORD: scratch space for a value
	records  int    // BLOCK: in columns
	columns  [4][]byte
	err      error // the first error; no writes follow it
}

// flushSize is how many bytes a Writer collects before it writes them.
const flushSize = 64 << 10

// NewWriter writes the header of a file to w and returns a Writer for its records.
func NewWriter(w io.Writer, opts WriterOptions) (*Writer, error) {
	if opts.SyncInterval < 0 || opts.BlockSize < 0 {
		return nil, errors.New("sequencefiles: sync interval and block size must not be negative")
	}
	opts.KeyClass, opts.ValueClass = cmp.Or(opts.KeyClass, BytesWritable), cmp.Or(opts.ValueClass, BytesWritable)
	opts.SyncInterval, opts.BlockSize = cmp.Or(opts.SyncInterval, DefaultSyncInterval), cmp.Or(opts.BlockSize, DefaultBlockSize)
	switch opts.Compression {
	case None:
		if opts.Codec != "" {
			return nil, fmt.Errorf("sequencefiles: codec %s without compression", opts.Codec)
		}
	case Record, Block:
		opts.Codec = cmp.Or(opts.Codec, DefaultCodec)
	default:
		return nil, fmt.Errorf("sequencefiles: no such compression: %d", opts.Compression)
	}
	sw := &Writer{w: w, opts: opts}
	if opts.Codec != "" {
		if codecs[opts.Codec] == nil {
			return nil, fmt.Errorf("sequencefiles: codec %q is not supported", opts.Codec)
		}
		sw.encoder = codecs[opts.Codec]()
	}
	if opts.SyncSeed != "" {
		sw.sync = md5.Sum([]byte(opts.SyncSeed))
	} else if _, err := rand.Read(sw.sync[:]); err != nil {
		return nil, err
	}
	sw.appendHeader()
	if err := sw.flush(0); err != nil {
		return nil, err
	}
	return sw, nil
}

// appendHeader appends the header, with the metadata in order of its keys (as Hadoop's TreeMap has them).
func (w *Writer) appendHeader() {
	o := &w.opts
	w.buf = append(w.buf, "SEQ\x06"...)
	w.buf = appendString(w.buf, o.KeyClass)
	w.buf = appendString(w.buf, o.ValueClass)
	w.buf = append(w.buf, [][]byte{None: {0, 0}, Record: {1, 0}, Block: {1, 1}}[o.Compression]...)
	if o.Compression != None {
		w.buf = appendString(w.buf, o.Codec)
	}
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(o.Metadata)))
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		w.buf = appendString(w.buf, k)
		w.buf = appendString(w.buf, o.Metadata[k])
	}
	w.buf = append(w.buf, w.sync[:]...)
}

func appendString(dst []byte, s string) []byte { return append(AppendLength(dst, len(s)), s...) }

// Append writes a record. Key and value are wrapped if their class is BytesWritable or Text.
func (w *Writer) Append(key, value []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(key)+len(value) > maxRecord-2*5 {
		return errRecordSize // nothing was written: the Writer can go on
	}
	if w.opts.Compression == Block {
		return w.appendToBlock(key, value)
	}
	if w.Position()-w.lastSync >= int64(w.opts.SyncInterval) {
		w.appendSync()
	}
	if err := w.appendRecord(key, value); err != nil {
		return w.fail(err)
	}
	return w.flush(flushSize)
}

// appendRecord appends a record to the buffer.
func (w *Writer) appendRecord(key, value []byte) (err error) {
	head := len(w.buf)
	w.buf = append(w.buf, 0, 0, 0, 0, 0, 0, 0, 0)
	w.buf = wrap(w.buf, w.opts.KeyClass, key)
	keyLength := len(w.buf) - head - recordHead
	if w.opts.Compression == Record {
		w.value = wrap(w.value[:0], w.opts.ValueClass, value)
		w.buf, err = w.encoder(w.buf, w.value)
	} else {
		w.buf = wrap(w.buf, w.opts.ValueClass, value)
	}
	length := len(w.buf) - head - recordHead
	if err == nil && length > maxRecord {
		err = errRecordSize
	}
	binary.BigEndian.PutUint32(w.buf[head:], uint32(length))
	binary.BigEndian.PutUint32(w.buf[head+4:], uint32(keyLength))
	return err
}

// Position returns the file offset of the next byte, behind a block that is complete.
func (w *Writer) Position() int64 { return w.written + int64(len(w.buf)) }

func (w *Writer) appendSync() {
	w.buf = append(w.buf, 0xff, 0xff, 0xff, 0xff)
	w.buf = append(w.buf, w.sync[:]...)
	w.lastSync = w.Position()
}

// Sync writes what was appended to the underlying writer, with a sync marker behind it or, with BLOCK, as a block.
func (w *Writer) Sync() error {
	if w.err != nil {
		return w.err
	}
	if w.opts.Compression != Block {
		w.appendSync()
	} else if err := w.endBlock(); err != nil {
		return err
	}
	return w.flush(0)
}

// Close writes everything to the underlying writer, which it does not close. The Writer cannot be used any more; a
// second Close returns an error.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.opts.Compression == Block {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	err := w.flush(0)
	if err == nil {
		w.err = ErrClosed
	}
	return err
}

// flush writes the buffer to the underlying writer if it has at least size bytes.
func (w *Writer) flush(size int) error {
	if len(w.buf) < size || len(w.buf) == 0 {
		return nil
	}
	n, err := w.w.Write(w.buf)
	if err == nil && n < len(w.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return w.fail(fmt.Errorf("sequencefiles: writing at offset %d: %w", w.written, err))
	}
	w.written += int64(n)
	w.buf = w.buf[:0]
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = err
	return err
}
