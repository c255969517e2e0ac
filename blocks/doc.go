// Package blocks owns the files that sequins serves from: the block format with its writer and
// reader.
//
// A block is written once: the loader gives ascending records to [Writer], and package store publishes
// the file, which never changes again.
//
// A request passes through [Reader.Get]: the index in memory names the one page that can hold the key. A
// page that is known to be in memory is searched in the map, by the one-byte fingerprints of its
// records. Of any other the filter says first whether the key may be there at all, and then it is read
// once, with pread, and checked. Records can be encoded one by one, by symbols that the writer chooses: then the one that is
// found is decoded, and no other.
//
// The index, the filter, the symbols and the file with its map are packages below internal. This package has what they serve: the
// format of pages and values, and the decision from where a page is read.
//
// docs/FORMAT.md describes the format byte by byte.
package blocks
