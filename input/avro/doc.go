// Package avro reads Avro object container files, one of the input formats of sequins. It owns the container, its
// codecs, the schema language, the decoding of records, which field of a record is the key and which the value, and how
// they are written down (see internal/render for that).
//
// A file passes through like this: NewReader reads the header and finds the two fields in the file's own
// schema, so that the files of a version may have different ones. Scan then decodes one record from what
// a block decompresses to: the two fields are rendered as they come, everything else is skipped. There is no tree of
// values in between.
//
// A file is read with its own schema, as it was written. Names can have any characters, as BigQuery, Java's reflection and
// Spark write them. Defaults, which only a reader with another schema needs, are not looked at.
//
// What a schema says of a number's meaning is followed: decimal, date, time-*, timestamp-*,
// local-timestamp-*, uuid and duration. Of a union only the value is seen, not which branch it is. Any
// other logical type is its plain value, and so are a logical type on a base for which it is not specified and a decimal
// whose precision or scale is not valid.
//
// Codecs: null, deflate, snappy, zstandard and bzip2.
//
// # Memory
//
// No length in a file is believed: buffers grow with the bytes that come. A reader holds a key and a value, each up to
// MaxValue, and a block as it is in the file and decompressed, each up to MaxBlock. Zstandard adds a window of 128 MiB at most.
//
// # Errors
//
// Damage that the format shows is ErrCorrupt: sync markers, the checksum of snappy blocks, lengths, blocks with other
// than their records, and a file that ends within a block. There are no other checksums: a byte flipped in a string of an
// uncompressed block passes. A file that ends between two blocks is whole to the format; its size tells.
package avro
