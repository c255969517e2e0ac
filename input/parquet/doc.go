// Package parquet reads Parquet files, one of the input formats of sequins. It owns which column of a row
// is the key and what is the value, the file's structure (footer, row groups, pages, codecs, encodings), how rows are put
// together from columns, and how they are rendered (see internal/render for that).
//
// NewReader reads the footer, makes a tree of the file's own schema and finds the two fields in it, so that the
// files of a version may have different ones. Only the columns below these fields are read. Scan then takes the
// values of one row from each of them, puts the fields together and renders them.
//
// Columns lie one after another in a row group, so that a row is read from as many places as it has
// columns: a file needs an io.ReaderAt. Of each column one page and its dictionary are in memory.
//
// What a schema says of a number's meaning is followed, in the logical types and in the converted types of
// old files: STRING, ENUM, JSON, DECIMAL, DATE, TIME, TIMESTAMP, UUID, INT, FLOAT16, INTERVAL, and INT96
// as the instant that Hive, Impala and Spark mean by it. Dates and timestamps that Spark notes as written by the
// Julian calendar are converted. JSON is text, and so a string. LIST is an array
// and MAP an object, in the old spellings of both, too; a MAP without values is an array of its keys, and one whose keys
// are not scalars is an array of its entries. Groups without fields are left out. BYTE_ARRAY without a type is bytes,
// even if its writer meant text. Values of any other logical type are rendered as if they had none.
//
// Codecs: none, snappy, gzip, zstd, brotli, lz4_raw and lz4 (Hadoop's blocks, frames and raw blocks). Encodings:
// PLAIN, dictionaries, RLE of booleans, the three DELTA encodings, BYTE_STREAM_SPLIT. LZO, levels with the
// encoding BIT_PACKED, and encrypted columns are errors that say so.
//
// No file makes a reader use much more memory than its limits say: a footer has up to 64 MiB, with 65,536 fields in
// 100 levels; a page has up to 256 MiB before and after unpacking; the pages, dictionaries and buffers of all
// columns that are read have up to 1 GiB together; and a row has up to 256 MiB, each value counted with 128 bytes
// and the names of its fields. Lengths, counts and offsets are compared with these and with the file before
// anything is allocated.
//
// Damage that the format shows is ErrCorrupt. Pages have checksums where the writer made them (parquet-mr
// does since 1.11); without, a byte flipped in an uncompressed page passes.
package parquet
