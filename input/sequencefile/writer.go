package sequencefile

import (
	"cmp"
	"crypto/md5"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
)

const (
	// DefaultSyncInterval is the approximate number of bytes between sync markers, as in Hadoop.
	DefaultSyncInterval = 100 << 10
	// DefaultBlockSize is the number of bytes of keys and values, serialised but not compressed, in a block, as in
	// Hadoop.
	DefaultBlockSize = 1_000_000
)

var (
	errWriterClosed = errors.New("sequencefile: writer is closed")
	errRecordSize   = errors.New("sequencefile: record is too large")
)

// WriterOptions configures a Writer. The zero value gives an uncompressed file of BytesWritable.
type WriterOptions struct {
	KeyClass   string // Java class name; default BytesWritable. What is neither that nor Text is to be appended serialised.
	ValueClass string // likewise

	Compression Compression
	Codec       string // class name, one of Codecs but BZip2Codec; default DefaultCodec. Must be empty if nothing is compressed.

	Metadata map[string]string

	SyncInterval int // bytes; default DefaultSyncInterval. Not for BLOCK, which has a sync marker in front of each block.
	BlockSize    int // bytes; default DefaultBlockSize. Only for BLOCK.

	// SyncSeed decides the sync marker: equal options, seeds and records make equal files. By default the marker is
	// random, as it should be in files that may be concatenated or searched for it.
	SyncSeed string
}

// Writer writes a SequenceFile of version 6. It is not safe for concurrent use.
type Writer struct {
	w            io.Writer
	header       Header
	keys, values wrapping
	encoder      encoder // nil if nothing is compressed
	syncInterval int
	blockSize    int

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
		return nil, errors.New("sequencefile: sync interval and block size must not be negative")
	}
	sw := &Writer{
		w: w,
		header: Header{
			Version:     versionMetadata,
			KeyClass:    cmp.Or(opts.KeyClass, BytesWritable),
			ValueClass:  cmp.Or(opts.ValueClass, BytesWritable),
			Compression: opts.Compression,
			Codec:       opts.Codec,
			Metadata:    maps.Clone(opts.Metadata),
		},
		syncInterval: cmp.Or(opts.SyncInterval, DefaultSyncInterval),
		blockSize:    cmp.Or(opts.BlockSize, DefaultBlockSize),
	}
	sw.keys, sw.values = wrappingOf(sw.header.KeyClass), wrappingOf(sw.header.ValueClass)
	if err := sw.setCodec(); err != nil {
		return nil, err
	}
	if err := sw.setSync(opts.SyncSeed); err != nil {
		return nil, err
	}
	sw.buf = appendHeader(nil, &sw.header)
	if err := sw.checkHeader(); err != nil {
		return nil, err
	}
	if err := sw.flush(0); err != nil {
		return nil, err
	}
	return sw, nil
}

// setCodec checks compression and codec, and makes the encoder.
func (w *Writer) setCodec() (err error) {
	h := &w.header
	switch h.Compression {
	case None:
		if h.Codec != "" {
			return fmt.Errorf("sequencefile: codec %s without compression", h.Codec)
		}
		return nil
	case Record, Block:
	default:
		return fmt.Errorf("sequencefile: no such compression: %v", h.Compression)
	}
	h.Codec = cmp.Or(h.Codec, DefaultCodec)
	c := codecs[h.Codec]
	if c == nil || c.newEncoder == nil {
		return fmt.Errorf("sequencefile: codec %q is not supported", h.Codec)
	}
	w.encoder, err = c.newEncoder()
	return err
}

func (w *Writer) setSync(seed string) error {
	if seed != "" {
		w.header.Sync = md5.Sum([]byte(seed))
		return nil
	}
	_, err := rand.Read(w.header.Sync[:])
	return err
}

// checkHeader checks the header against the limits of a Reader.
func (w *Writer) checkHeader() error {
	if len(w.buf) > maxHeader || len(w.header.Metadata) > maxMetadata {
		return fmt.Errorf("sequencefile: a header of %d bytes and %d pairs of metadata is too large (%d, %d)",
			len(w.buf), len(w.header.Metadata), maxHeader, maxMetadata)
	}
	return nil
}

// Append writes a record. Key and value are wrapped if their class is BytesWritable or Text.
func (w *Writer) Append(key, value []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(key)+len(value) > maxRecord-2*maxVIntLen {
		return errRecordSize // nothing was written: the Writer can go on
	}
	if w.header.Compression == Block {
		return w.appendToBlock(key, value)
	}
	if w.position()-w.lastSync >= int64(w.syncInterval) {
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
	w.buf = w.keys.wrap(w.buf, key)
	keyLength := len(w.buf) - head - recordHead
	if w.header.Compression == Record {
		w.value = w.values.wrap(w.value[:0], value)
		w.buf, err = w.encoder(w.buf, w.value)
	} else {
		w.buf = w.values.wrap(w.buf, value)
	}
	length := len(w.buf) - head - recordHead
	if err == nil && length > maxRecord {
		err = errRecordSize
	}
	binary.BigEndian.PutUint32(w.buf[head:], uint32(length))
	binary.BigEndian.PutUint32(w.buf[head+4:], uint32(keyLength))
	return err
}

// position returns the file offset of the next byte.
func (w *Writer) position() int64 { return w.written + int64(len(w.buf)) }

func (w *Writer) appendSync() {
	w.buf = append(w.buf, 0xff, 0xff, 0xff, 0xff)
	w.buf = append(w.buf, w.header.Sync[:]...)
	w.lastSync = w.position()
}

// Close writes everything to the underlying writer, which it does not close. The Writer cannot be used any more; a
// second Close returns an error.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.header.Compression == Block {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	err := w.flush(0)
	if err == nil {
		w.err = errWriterClosed
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
		return w.fail(fmt.Errorf("sequencefile: writing at offset %d: %w", w.written, err))
	}
	w.written += int64(n)
	w.buf = w.buf[:0]
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = err
	return err
}
