package blocks

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// WriterOptions say how a block is written.
type WriterOptions struct {
	Partition   int         // the partition that the block holds, for its properties
	Partitions  int         // of how many
	Compression Compression // of each page
	BlockSize   int         // bytes of a page before compression; 0 is DefaultBlockSize
	TempDir     string      // where hashes wait for the filter to be built; "" keeps them in memory
}

// stage is what a writer can be asked for next.
type stage uint8

const (
	stageRecords  stage = iota // → stageFinished, stageFailed
	stageFinished              // nothing follows
	stageFailed                // nothing follows
)

// Writer writes one block. It is for one goroutine.
//
// Memory: about a page's separator and 16 bytes for each page, 2 MiB of waiting hashes, and
// 6 MiB while the filter is built.
type Writer struct {
	w     io.Writer
	opts  WriterOptions
	stage stage
	err   error

	pack   *compressor
	page   pageBuilder
	large  []byte // payload of a large value's page
	index  indexBuilder
	filter filterBuilder
	props  Properties
	hash   xxhash.Digest

	lastKey   []byte // of the block so far
	pageStart []byte // separator of the page being built
	out       []byte // waits to be written
	offset    int64  // of the end of out in the file
}

const writeSize = 256 << 10

// NewWriter begins a block in w, which is written from its start to its end and never read.
// Syncing, closing and publishing it are the caller's.
func NewWriter(w io.Writer, opts WriterOptions) (*Writer, error) {
	if opts.BlockSize == 0 {
		opts.BlockSize = DefaultBlockSize
	}
	if opts.BlockSize < MinBlockSize {
		return nil, fmt.Errorf("block size %d: less than %d", opts.BlockSize, MinBlockSize)
	}
	opts.BlockSize = min(opts.BlockSize, MaxBlockSize)
	pack, err := newCompressor(opts.Compression)
	if err != nil {
		return nil, err
	}
	b := &Writer{w: w, opts: opts, pack: pack, filter: filterBuilder{dir: opts.TempDir}}
	b.hash.Reset()
	b.props = Properties{
		Partition: opts.Partition, Partitions: opts.Partitions,
		Compression: opts.Compression.String(), BlockSize: opts.BlockSize,
	}
	return b, nil
}

// Add appends a record. Keys must ascend strictly, byte by byte; otherwise ErrOrder, and the
// block is lost, as it is after any other error. ErrTooLarge for a key or value over its limit.
func (b *Writer) Add(key, value []byte) error {
	if b.stage != stageRecords {
		return b.failed("Add")
	}
	if err := b.addRecord(key, value); err != nil {
		return b.fail(err)
	}
	return nil
}

func (b *Writer) addRecord(key, value []byte) error {
	if len(key) > MaxKey || len(value) > MaxValue {
		return fmt.Errorf("record with a key of %d and a value of %d bytes: %w", len(key), len(value), ErrTooLarge)
	}
	if b.props.Records == 0 {
		b.props.FirstKey = bytes.Clone(key)
	} else if bytes.Compare(b.lastKey, key) >= 0 {
		return fmt.Errorf("%w: %q follows %q", ErrOrder, clip(key), clip(b.lastKey))
	}
	size := recordSize(len(key), len(value))
	if !b.page.empty() && (len(value) > LargeValue || b.page.size(size) > b.opts.BlockSize) {
		if err := b.flushPage(); err != nil {
			return err
		}
	}
	if b.page.empty() {
		b.pageStart = b.pageStart[:0]
		if b.props.Records > 0 {
			b.pageStart = append(b.pageStart, separator(b.lastKey, key)...)
		}
	}
	hash := xxhash.Sum64(key)
	if err := b.filter.add(hash); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	b.props.Records++
	b.props.RawBytes += int64(len(key) + len(value))
	b.lastKey = append(b.lastKey[:0], key...)
	if len(value) > LargeValue {
		return b.addLarge(key, value)
	}
	b.page.add(key, value, hash)
	return nil
}

// clip shortens a key for an error message.
func clip(key []byte) []byte { return key[:min(len(key), 64)] }

func (b *Writer) flushPage() error {
	payload := b.page.finish()
	b.hash.Write(payload)
	return b.writePage(payload)
}

// writePage packs a payload and puts it behind what is written, with its entry in the index.
func (b *Writer) writePage(payload []byte) error {
	start := len(b.out)
	out, err := b.pack.appendPacked(b.out, payload, uint32(b.props.Pages))
	if err != nil {
		return err
	}
	b.out = out
	n := len(b.out) - start
	packed := Compression(b.out[len(b.out)-5]) != None
	if pad := padding(b.offset, n); pad > 0 {
		b.out = append(b.out, zeros[:pad]...)
		copy(b.out[start+pad:], b.out[start:start+n])
		clear(b.out[start : start+pad])
		b.offset += int64(pad)
	}
	if err := b.index.add(b.pageStart, b.offset, n, packed); err != nil {
		return err
	}
	b.props.Pages++
	b.offset += int64(n)
	return b.flush(writeSize)
}

const (
	memoryPage = 4096
	maxPadding = 512
)

var zeros [maxPadding]byte

// padding keeps a page that fits into one page of memory from lying across two, where that costs
// little: a lookup in it then touches one entry of the page tables and not two.
func padding(offset int64, n int) int {
	room := int(memoryPage - offset%memoryPage)
	if n > memoryPage || n <= room || room > maxPadding {
		return 0
	}
	return room
}

// addLarge writes the chunks of a large value and then the page that names them.
func (b *Writer) addLarge(key, value []byte) error {
	le := binary.LittleEndian
	p := le.AppendUint16(b.large[:0], 0)
	p = le.AppendUint32(p, uint32(len(key)))
	p = append(p, key...)
	p = le.AppendUint64(p, uint64(len(value)))
	p = le.AppendUint64(p, xxhash.Sum64(value))
	b.hash.Write(p) // what follows depends on the codec
	p = le.AppendUint64(p, uint64(b.offset))
	for i := 0; len(value) > 0; i++ {
		chunk := value[:min(len(value), chunkSize)]
		value = value[len(chunk):]
		start := len(b.out)
		out, err := b.pack.appendPacked(b.out, chunk, uint32(i))
		if err != nil {
			return err
		}
		b.out = out
		b.offset += int64(len(out) - start)
		p = le.AppendUint32(p, uint32(len(out)-start))
		if err := b.flush(writeSize); err != nil {
			return err
		}
	}
	b.large = p
	return b.writePage(p)
}

// flush writes what waits, once it is at least n bytes.
func (b *Writer) flush(n int) error {
	if len(b.out) < n {
		return nil
	}
	_, err := b.w.Write(b.out)
	b.out = b.out[:0]
	return err
}

// Finish writes what is left of the block. The properties are those that the reader will give.
func (b *Writer) Finish() (Properties, error) {
	if b.stage != stageRecords {
		return Properties{}, b.failed("Finish")
	}
	if err := b.finish(); err != nil {
		return Properties{}, b.fail(err)
	}
	b.stage = stageFinished
	return b.props, nil
}

func (b *Writer) finish() error {
	if !b.page.empty() {
		if err := b.flushPage(); err != nil {
			return err
		}
	}
	b.props.LastKey = bytes.Clone(b.lastKey)
	b.props.ContentHash = hex.EncodeToString(b.hash.Sum(nil))
	var f footer
	prefix := b.props.FirstKey[:commonPrefix(b.props.FirstKey, b.lastKey)]
	if err := b.section(&f.index, func(write func([]byte) error) error {
		return write(b.index.appendTo(nil, prefix))
	}); err != nil {
		return err
	}
	if err := b.section(&f.filter, b.filter.writeTo); err != nil {
		return err
	}
	if err := b.section(&f.properties, func(write func([]byte) error) error {
		p, err := b.props.encode()
		if err != nil {
			return err
		}
		return write(p)
	}); err != nil {
		return err
	}
	b.out = f.appendTo(b.out)
	return b.flush(0)
}

// section writes one section and notes where it lies and its checksum.
func (b *Writer) section(s *section, body func(write func([]byte) error) error) error {
	s.offset = b.offset
	return body(func(p []byte) error {
		s.update(p)
		b.offset += int64(len(p))
		b.out = append(b.out, p...)
		return b.flush(writeSize)
	})
}

// Abort gives back what the writer holds, without finishing the block. After Finish it does nothing.
func (b *Writer) Abort() {
	b.filter.close()
	if b.stage == stageRecords {
		b.stage = stageFailed
	}
}

func (b *Writer) fail(err error) error {
	b.filter.close()
	b.stage, b.err = stageFailed, err
	return err
}

func (b *Writer) failed(call string) error {
	if b.err != nil {
		return b.err
	}
	return fmt.Errorf("%s after the block's end: %w", call, ErrStage)
}
