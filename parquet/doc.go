// Package parquet reads Parquet files, one of the input formats of sequins. It owns which column of a row
// is the key and what is the value, how rows are put together from columns, and how they are written down
// (see internal/render for that); the file's structure, pages, encodings and codecs are
// github.com/parquet-go/parquet-go's.
//
// A file passes through like this: NewReader reads the footer, makes a tree of the file's own schema and
// finds the two fields in it, so that the files of a version may have different ones. Only the columns
// below these are read. Scan then takes the values of one row from each of them, puts the fields together
// and renders them.
//
// Columns lie one after another in a row group, so that a row is read from as many places as it has
// columns: a file needs an io.ReaderAt. Of each column one page and its dictionary are in memory, or as
// many pages as a single row goes over.
//
// What a schema says of a number's meaning is followed, in the logical types and in the converted types of
// old files: STRING, ENUM, JSON, DECIMAL, DATE, TIME, TIMESTAMP, UUID, INT, FLOAT16, INTERVAL, and INT96
// as the instant that Hive, Impala and Spark mean by it. JSON is text, and so a string. LIST is an array
// and MAP an object, in the old spellings of both, too. BYTE_ARRAY without a type is bytes, even if its
// writer meant text.
//
// Codecs: none, snappy, gzip, zstd, brotli, lz4_raw and Hadoop's lz4, as far as the library has them.
//
// The header of a page is looked at before the library sees it (guard.go), which would allocate what it
// says: a page can have 256 MiB. What a damaged page without a checksum unpacks to is not bounded.
//
// Damage that the format shows is ErrCorrupt. Pages have checksums where the writer made them (parquet-mr
// does since 1.11); without, a byte flipped in an uncompressed page passes.
package parquet
