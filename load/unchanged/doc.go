// Package unchanged owns the reuse of blocks: a partition whose input has not changed gets the block of another content of its db as
// a hard link, and neither its files are parsed nor a block is written.
//
// Everything that determines a block goes into one SHA-256: the settings of the plan, the number of the partition and of all partitions,
// and the size and a checksum of each of its files. If the files are not aligned with the partitions, those are all files of the version.
// That hash is in the block's own properties (blocks.Properties.MadeFrom), so it goes where the block goes. Neither names nor times of files prove anything. A finished block is found
// by its hash in the manifest.
//
// A load process calls, between the plan and the load,
//
//	Watch     before the plan: hashes files while they are read, if the source has no checksums
//	New       with the plan
//	Link      for the partitions that the node wants: links and checks what it can
//	ReadAhead for the partitions that are loaded
//	MadeFrom  for each block of them, when its files have been read
//
// The checksums are those that the source has (source.File, source.Checksummer), or otherwise an XXH3 of
// 128 bits of all bytes. In the last case, Link reads only files whose sizes and first bytes are those of a former version; all others are
// hashed while they are loaded.
//
// A linked block is read as a whole and its hash is compared before it is published, so that damage does not spread: a partition that is loaded again
// because its block is damaged does not get the same file from another version. Files of blocks are never written to once they have
// their names, so that versions cannot change each other's. Whatever goes wrong with a link, the partition is loaded.
package unchanged
