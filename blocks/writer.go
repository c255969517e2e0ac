package blocks

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"

	"sequins/blocks/internal/filter"
	"sequins/blocks/internal/index"
)

// WriterOptions say how a block is written.
type WriterOptions struct {
	Partition   int         // the partition that the block holds, for its properties
	Partitions  int         // of how many
	Compression Compression // of each page
	BlockSize   int         // bytes of a page before compression; 0 is DefaultBlockSize
	TempDir     string      // where hashes and separators wait for filter and index to be built; "" is that of the system
}

// Writer writes one block. It is for one goroutine.
//
// Memory: 8 bytes for each page, or 3 if it has few records, at most 4 MiB of what separators differ in (more of it waits in TempDir), three
// keys, up to 3 MiB waiting to be written and 1 MiB of waiting hashes, and a few hundred KiB more while the filter is built.
type Writer struct {
	w    io.Writer
	opts WriterOptions
	err  error // of all further calls; nil before the block's end

	pack   *compressor
	coder  *coder // nil unless records are encoded
	page   pageBuilder
	raw    []byte // payload of a large value's page
	index  index.Builder
	filter filter.Builder
	props  Properties
	hash   xxhash.Digest // of the content
	file   xxh3.Hasher   // of what is written
	sum    [4]byte

	keptKey   []byte // the last one before page
	pageStart []byte // separator of the page being built
	piece     int    // how much is written at once
	out       []byte // waits to be written
	offset    int64  // of the end of out in the file
}

// How much is written at once, at offsets that are multiples of it. Where the page cache can, as that
// of ext4 and XFS, it keeps what came in one piece in one folio. Pieces of 2 MiB are mapped by one entry
// of the page tables each: a lookup in a page that is not packed as a whole becomes a third faster. Unpacking a
// page takes so much longer that it does not matter there, and smaller pieces stay in the processor's
// cache.
const (
	writeSize       = 2 << 20
	writeSizePacked = 256 << 10
)

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
	b := &Writer{
		w: w, opts: opts, pack: pack, piece: writeSizePacked,
		page: newPageBuilder(opts.BlockSize),
	}
	if opts.Compression != Zstd {
		b.piece = writeSize
	}
	if opts.Compression == FSST {
		b.coder = &coder{epoch: firstEpoch}
	}
	b.index = index.NewBuilder(opts.TempDir)
	b.filter = filter.NewBuilder(opts.TempDir)
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
	if b.err == nil {
		if err := b.addRecord(key, value); err != nil {
			b.end(err)
		}
	}
	return b.err
}

func (b *Writer) addRecord(key, value []byte) error {
	if len(key) > MaxKey || len(value) > MaxValue {
		return fmt.Errorf("record with a key of %d and a value of %d bytes: %w", len(key), len(value), ErrTooLarge)
	}
	if b.props.Records == 0 {
		b.props.FirstKey = cloneKey(key)
	} else if bytes.Compare(b.lastKey(), key) >= 0 {
		return fmt.Errorf("%w: %q follows %q", ErrOrder, clip(key), clip(b.lastKey()))
	}
	hash := xxhash.Sum64(key)
	if err := b.filter.Add(hash); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	b.props.MaxValue = max(b.props.MaxValue, int64(len(value)))
	size := recordSize(len(key), len(value))
	if !b.page.empty() && (len(value) > LargeValue || b.page.size(size) > b.opts.BlockSize) {
		if err := b.flushPage(); err != nil {
			return err
		}
	}
	if b.page.empty() {
		b.pageStart = b.pageStart[:0]
		if b.props.Records > 0 {
			b.pageStart = append(b.pageStart, index.Separator(b.keptKey, key)...)
		}
	}
	b.index.AddRecord(hash)
	b.props.Records++
	b.props.RawBytes += int64(len(key) + len(value))
	if len(value) > LargeValue {
		b.keepKey(key)
		return b.addLarge(key, value)
	}
	b.page.add(key, value, hash)
	return nil
}

// lastKey is that of the block so far, of which there is one, until the next is added.
func (b *Writer) lastKey() []byte {
	if b.page.empty() {
		return b.keptKey
	}
	return b.page.lastKey()
}

// clip shortens a key for an error message.
func clip(key []byte) []byte { return key[:min(len(key), 64)] }

func (b *Writer) keepKey(key []byte) { b.keptKey = append(b.keptKey[:0], key...) }

// cloneKey returns a copy that is not nil. A key without bytes may come as nil or as an empty slice; the properties
// spell these differently, and the bytes of a block must depend on its records alone.
func cloneKey(key []byte) []byte { return append([]byte{}, key...) }

func (b *Writer) flushPage() error {
	b.keepKey(b.page.lastKey())
	payload := b.page.take()
	crc := crc32.Checksum(payload, castagnoli)
	b.addContent(crc)
	if b.opts.Compression == None {
		return b.storePage(payload, crc)
	}
	return b.packPage(payload)
}

// storePage puts a payload, whose CRC-32C is crc, behind what is written. Packed, it would be known only afterwards where it
// lies; this way it is copied once.
func (b *Writer) storePage(payload []byte, crc uint32) error {
	b.pad(b.padding(len(payload) + trailerSize))
	start := len(b.out)
	b.out = append(b.out, payload...)
	b.out = appendTrailer(b.out, crc, len(payload), None, uint32(b.props.Pages))
	return b.endPage(start)
}

// addContent adds the checksum of a payload to the content hash.
func (b *Writer) addContent(crc uint32) {
	b.hash.Write(binary.LittleEndian.AppendUint32(b.sum[:0], crc))
}

// packPage packs a payload and puts it behind what is written.
func (b *Writer) packPage(payload []byte) error {
	start := len(b.out)
	if b.coder != nil {
		b.out = b.coder.appendPage(b.out, payload, uint32(b.props.Pages))
	} else {
		b.out = b.pack.appendPacked(b.out, payload, uint32(b.props.Pages))
	}
	if pad := b.padding(len(b.out) - start); pad > 0 {
		b.pad(pad)
		copy(b.out[start+pad:], b.out[start:])
		clear(b.out[start : start+pad])
		start += pad
	}
	return b.endPage(start)
}

func (b *Writer) pad(n int) {
	b.out = append(b.out, make([]byte, n)...)
	b.offset += int64(n)
}

// endPage enters the page that begins at out[start] into the index.
func (b *Writer) endPage(start int) error {
	n := len(b.out) - start
	packed := Compression(b.out[len(b.out)-5]) != None
	if err := b.index.Add(b.pageStart, b.offset, n, packed); err != nil {
		return err
	}
	b.props.Pages++
	b.offset += int64(n)
	return b.flush()
}

const (
	memoryPage = 4096
	maxPadding = 512
)

// padding keeps a page of n bytes that fits into one page of memory from lying across two, where that costs
// little: a lookup in it then touches one entry of the page tables and not two.
func (b *Writer) padding(n int) int {
	room := int(memoryPage - b.offset%memoryPage)
	if n > memoryPage || n <= room || room > maxPadding || b.index.Few() {
		return 0
	}
	return room
}

// addLarge writes the chunks of a large value and then the page that names them.
func (b *Writer) addLarge(key, value []byte) error {
	le := binary.LittleEndian
	p := le.AppendUint16(b.raw[:0], 0)
	p = le.AppendUint32(p, uint32(len(key)))
	p = append(p, key...)
	p = le.AppendUint64(p, uint64(len(value)))
	p = le.AppendUint64(p, xxhash.Sum64(value))
	b.addContent(crc32.Checksum(p, castagnoli)) // what follows depends on the codec
	for len(value) > 0 {
		n := chunkSize
		if len(value) < 2*chunkSize {
			n = len(value)
		}
		start := len(b.out)
		out, codec := b.pack.appendShrunk(b.out, value[:n])
		b.out, value = out, value[n:]
		stored := out[start:]
		b.offset += int64(len(stored))
		p = le.AppendUint32(p, uint32(len(stored))|uint32(codec)<<24)
		p = le.AppendUint32(p, crc32.Checksum(stored, castagnoli))
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.raw = p
	return b.storePage(p, crc32.Checksum(p, castagnoli))
}

// flush writes what waits as far as it is whole pieces.
func (b *Writer) flush() error {
	if len(b.out) < b.piece {
		return nil
	}
	n := len(b.out) / b.piece * b.piece
	_, _ = b.file.Write(b.out[:n]) // never fails
	_, err := b.w.Write(b.out[:n])
	b.out = b.out[:copy(b.out, b.out[n:])]
	return err
}

// SetMadeFrom sets what the block says of the input that it was made from, a text that this package does not read.
func (b *Writer) SetMadeFrom(text string) { b.props.MadeFrom = text }

// Finish writes what is left of the block. The properties are those that the reader will give.
func (b *Writer) Finish() (Properties, error) {
	if b.err != nil {
		return Properties{}, b.err
	}
	if err := b.finish(); err != nil {
		b.end(err)
		return Properties{}, err
	}
	b.end(errEnded)
	return b.props, nil
}

func (b *Writer) finish() error {
	if !b.page.empty() {
		if err := b.flushPage(); err != nil {
			return err
		}
	}
	if b.props.Records > 0 {
		b.props.LastKey = cloneKey(b.keptKey)
	}
	b.props.ContentHash = hex.EncodeToString(b.hash.Sum(nil))
	var f footer
	if err := b.section(&f.index, func(write func([]byte) error) error {
		return b.index.WriteTo(b.props.FirstKey, b.keptKey, write)
	}); err != nil {
		return err
	}
	if err := b.section(&f.filter, b.filter.WriteTo); err != nil {
		return err
	}
	if err := b.section(&f.symbols, func(write func([]byte) error) error {
		if b.coder == nil {
			return nil
		}
		return write(b.coder.section)
	}); err != nil {
		return err
	}
	if err := b.section(&f.properties, func(write func([]byte) error) error {
		p, err := json.Marshal(b.props)
		if err != nil {
			return err
		}
		return write(p)
	}); err != nil {
		return err
	}
	_, _ = b.file.Write(b.out) // never fails
	f.hash = b.file.Sum128().Bytes()
	b.out = f.appendTo(b.out)
	_, err := b.w.Write(b.out)
	return err
}

// section writes one section and notes where it lies and its checksum.
func (b *Writer) section(s *section, body func(write func([]byte) error) error) error {
	s.offset = b.offset
	return body(func(p []byte) error {
		s.update(p)
		b.offset += int64(len(p))
		b.out = append(b.out, p...)
		return b.flush()
	})
}

// Abort gives back what the writer holds, without finishing the block. After Finish it does nothing.
func (b *Writer) Abort() {
	if b.err == nil {
		b.end(errEnded)
	}
}

// errEnded is the error of calls after Finish or Abort.
var errEnded = fmt.Errorf("the block has ended: %w", ErrStage)

// end gives back what the writer holds. err is that of all further calls.
func (b *Writer) end(err error) {
	b.filter.Close()
	b.index.Close()
	b.out, b.err = nil, err
}
