package blocks

import "sequins/blocks/internal/index"

// The block format, version 1. Integers are little-endian. docs/FORMAT.md gives the reasons.
//
//	block   = { page | chunk } index filter symbols properties footer
//
//	page    = payload rawLength:u24 codec:u8 crc:u32       payload packed by codec
//	payload = n:u16 fingerprint:u8[n] end:u16[n-1] record*  n >= 1: n records, ascending by key
//	record  = keyLength:uvarint key value                 encoded by symbols if the codec of the page is FSST
//	payload = 0:u16 keyLength:u32 key valueLength:u64 valueHash:u64 { stored:u24 codec:u8 crc:u32 }[chunks]
//	                                                        n = 0: one record with a large value
//	chunk   = data                                          64 KiB of a large value, before its page
//
//	index   = groups:u32 prefixLength:u32 runsLength:u32 prefix fence:u64[groups]
//	          location:u64[groups] run* tails:u32 { tailEnd:u32[groups] tail bytes }
//	                                                        tails is 0 or groups; see package index
//	filter  = zero:u8[64] { remainder:u8[n] bitmap } zero:u8[8] start:u16[blocks]
//	          base:u64[superblocks] blocks:u32              see package filter
//	symbols = { firstPage:u32 count:u8 length:u8[count] symbol* }      tables, each for the pages from its first on
//	footer  = { offset:u64 length:u64 }[4] crc:u32[4] of index, filter, symbols, properties
//	          hash:u8[16] version:u32 footerCRC:u32 magic:u8[8]
const (
	formatVersion = 1

	magic = "sqnblck\n"

	// trailerSize is the length of what stands behind the data of each page. The crc is the
	// CRC-32C of all before it, xored with 0x9e3779b1 times the ordinal of the page.
	trailerSize = 8

	hashSize   = 16
	footerSize = 4*(8+8+4) + hashSize + 2*4 + 8

	// maxStored bounds a page as it lies on the disk and unpacked.
	maxStored = index.MaxLength
)

const (
	// MaxKey is the longest key in bytes: the longest that a request can carry.
	MaxKey = 64 << 10

	// MaxValue is the longest value in bytes, as in Hadoop's formats.
	MaxValue = 1<<31 - 1

	// LargeValue is the length in bytes above which a value is cut into chunks, so that it can
	// be served without being in memory as a whole.
	LargeValue = 64 << 10

	// chunkSize is the length of every chunk of a large value but the last, which has up to one byte less than twice as much.
	chunkSize = 64 << 10

	// DefaultBlockSize is the usual length of a page in bytes, before compression.
	DefaultBlockSize = 4096

	// MinBlockSize and MaxBlockSize bound a page's length; larger settings are cut to
	// MaxBlockSize, as the records of a page are found by 16-bit offsets.
	MinBlockSize = 256
	MaxBlockSize = 60 << 10
)
