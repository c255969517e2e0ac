package sparkey

import (
	"encoding/binary"
	"fmt"
	"math"

	"sequins/internal/unpack"
)

const (
	Magic        = 0x49b39c95 // the first four bytes of a log, little-endian
	majorVersion = 1
	minorVersion = 0
	headerSize   = 84

	// MaxBlockSize is the maximum size of a compression block, in bytes before compression. Users of Sparkey choose 1
	// to 64 KiB; the limit keeps a damaged header from causing a large allocation.
	MaxBlockSize = 64 << 20
	// MaxExpanded bounds an entry of a compressed log, key and value together, in bytes before compression: a few KB
	// can expand to any length.
	MaxExpanded = 256 << 20
	// minBlockSize is Sparkey's minimum: a block has room for the two lengths of an entry.
	minBlockSize = 10
	// maxLength bounds keys and values, in bytes: what Java can write and sequins can store.
	maxLength = math.MaxInt32
)

// Compression is the compression of a log's entries.
type Compression uint32

// The compressions, by their numbers in the header.
const (
	None Compression = iota
	Snappy
	Zstd
)

var decoders = map[Compression]unpack.Decoder{Snappy: unpack.Snappy, Zstd: unpack.Zstd}

func (c Compression) String() string {
	switch c {
	case None:
		return "none"
	case Snappy:
		return "snappy"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("compression %d", uint32(c))
}

// Header is the header of a log. Sizes are in bytes before compression.
type Header struct {
	Major, Minor       uint32
	FileID             uint32
	Puts, Deletes      uint64
	DataEnd            uint64 // offset after the last entry
	MaxKeyLen          uint64 // of puts
	MaxValueLen        uint64
	DeleteSize         uint64
	Compression        Compression
	BlockSize          uint32
	PutSize            uint64
	MaxEntriesPerBlock uint32 // not used: writers disagree on it for uncompressed logs
}

func parseHeader(b []byte) Header {
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	return Header{
		Major: u32(b[4:]), Minor: u32(b[8:]), FileID: u32(b[12:]),
		Puts: u64(b[16:]), Deletes: u64(b[24:]), DataEnd: u64(b[32:]),
		MaxKeyLen: u64(b[40:]), MaxValueLen: u64(b[48:]), DeleteSize: u64(b[56:]),
		Compression: Compression(u32(b[64:])), BlockSize: u32(b[68:]),
		PutSize: u64(b[72:]), MaxEntriesPerBlock: u32(b[80:]),
	}
}

// supported returns an ErrUnsupported for a log of a later Sparkey.
func (h *Header) supported() error {
	if h.Major != majorVersion || h.Minor > minorVersion {
		return fmt.Errorf("%w: version %d.%d, known is %d.%d", ErrUnsupported, h.Major, h.Minor, majorVersion, minorVersion)
	}
	if h.Compression > Zstd {
		return fmt.Errorf("%w: %v, known are none, snappy and zstd", ErrUnsupported, h.Compression)
	}
	return nil
}

// flaw describes an inconsistency of the header, or returns "".
func (h *Header) flaw() string {
	switch {
	case h.DataEnd < headerSize || h.DataEnd > math.MaxInt64:
		return fmt.Sprintf("the data ends at %d", h.DataEnd)
	case h.Puts > h.PutSize/2 || h.Deletes > h.DeleteSize/2: // an entry takes at least two bytes
		return fmt.Sprintf("%d puts in %d bytes, %d deletes in %d", h.Puts, h.PutSize, h.Deletes, h.DeleteSize)
	case h.MaxKeyLen > h.PutSize || h.MaxValueLen > h.PutSize:
		return fmt.Sprintf("keys up to %d and values up to %d bytes in puts of %d", h.MaxKeyLen, h.MaxValueLen, h.PutSize)
	}
	if h.Compression != None {
		if h.BlockSize < minBlockSize || h.BlockSize > MaxBlockSize {
			return fmt.Sprintf("compression blocks of %d bytes", h.BlockSize)
		}
		return ""
	}
	if data := h.DataEnd - headerSize; h.PutSize > data || h.DeleteSize != data-h.PutSize {
		return fmt.Sprintf("%d bytes of puts and %d of deletes are not the %d bytes of entries", h.PutSize, h.DeleteSize, data)
	}
	return ""
}
