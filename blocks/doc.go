// Package blocks owns the files that sequins serves from: the block format with its writer and
// reader, and the store directory in which the blocks of each version lie beside their manifest.
//
// A version passes through it once. The loader asks [Store] for the version's directory, gives
// ascending records to [Writer], and publishes each finished block under its final name, where it
// never changes again.
//
// A request passes through [Reader.Get]: the index in memory names the one page that can hold the key. A
// page that is known to be in memory is searched in the map, by the one-byte fingerprints of its
// records. Of any other the filter says first whether the key may be there at all, and then it is read
// once, with pread, and checked.
//
// docs/FORMAT.md describes the format byte by byte.
package blocks
