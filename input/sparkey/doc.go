// Package sparkey reads Sparkey logs (.spl), one of the input formats of sequins. It owns the format and nothing else: what
// the records are for, which partition a log is and what becomes of a deleted key is the loader's business. The hash index that usually
// lies beside a log (.spi, or .spi.sz) is not needed and not read.
//
// A log is a header and a row of entries, oldest first. All numbers are little-endian; a vlq is seven bits a byte, lowest first, the top bit
// set on all bytes but the last.
//
//	offset size
//	     0    4  magic 0x49b39c95
//	     4    4  major version, 1
//	     8    4  minor version, 0
//	    12    4  file identifier, random; ties an index to its log
//	    16    8  number of puts
//	    24    8  number of deletes
//	    32    8  data end: the offset after the last entry
//	    40    8  longest key of a put, bytes
//	    48    8  longest value, bytes
//	    56    8  bytes of all deletes, before compression
//	    64    4  compression: 0 none, 1 snappy, 2 zstd
//	    68    4  compression block size: the most bytes of a block before compression; 0 with none
//	    72    8  bytes of all puts, before compression
//	    80    4  most entries that begin in one block
//	    84       entries
//
//	put     vlq(key length + 1)  vlq(value length)  key  value
//	delete  0                    vlq(key length)    key
//
// With compression, the entries are cut into blocks, each vlq(compressed length) and one raw snappy or zstd stream. An entry may go on over
// several blocks, but then the next entry begins a block of its own.
//
// There are no checksums: a byte flipped inside a key or value passes, unless it lies in a compressed block that can no longer be
// decompressed. Everything that can be checked is: every length against the header and against what is left, and at the end the numbers and
// sizes of the header against what was read.
//
// The facts are from the C library's logheader.c, logwriter.c and logreader.c, and from LogHeader and CompressedWriter of the Java one.
package sparkey
