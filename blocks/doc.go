// Package blocks owns the files that sequins serves from: the block format with its writer and
// reader, the external sort that puts records in order for a block, and the store directory in
// which the blocks of each version lie beside their manifest.
//
// A version passes through it once. The loader asks [Store] for the version's directory, sorts
// what is not sorted with [Sorter], gives ascending records to [Writer], and publishes each
// finished block under its final name, where it never changes again.
//
// A request passes through [Reader.Get]: the filter turns away keys that are not there, the index
// in memory names the one page that can hold the key, the page is read once (through the map
// where it is known to be in memory, with pread where it is not), and the record is found by its
// one-byte fingerprint without decoding those before it.
//
// docs/FORMAT.md describes the format byte by byte.
package blocks
