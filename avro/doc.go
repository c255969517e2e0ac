// Package avro reads Avro object container files, one of the input formats of sequins. It owns which field
// of a record is the key and which the value, and how they are written down (see internal/render for that);
// the container, its blocks and the schema language are github.com/twmb/avro's.
//
// A file passes through like this: NewReader reads the header and finds the two fields in the file's own
// schema, so that the files of a version may have different ones. If not the whole record is the value,
// the others are skipped rather than decoded. Scan then decodes one record into a tree of Go values, takes
// the two out, and renders them.
//
// What a schema says of a number's meaning is followed: decimal, date, time-*, timestamp-*,
// local-timestamp-*, uuid and duration. Of a union only the value is seen, not which branch it is. Any
// other logical type is its plain value.
//
// Codecs: null, deflate, snappy, zstandard and bzip2. A block is held in memory as a whole, and may have
// MaxBlock bytes before and after compression.
//
// Damage that the format shows is ErrCorrupt: sync markers, the checksum of snappy blocks, lengths, and a
// file that ends within a block. There are no other checksums: a byte flipped in a string of an
// uncompressed block passes. A file that ends between two blocks is whole to the format; its size tells.
package avro
