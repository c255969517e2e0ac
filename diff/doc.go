// Package diff compares two versions of a database: which keys the new one has added, removed and changed.
//
// A request goes through Handler. It acquires both versions, and compares those partitions of which both blocks are on
// this node, one after the other: it merges their records, which are in the order of the keys, or reads nothing if the
// blocks have the same content hash. It asks the other nodes for the partitions that are left, with the same request and
// the numbers of the partitions, and says which ones nobody has. Versions that are partitioned differently are compared
// as a whole, if all of both is on this node.
//
// The answer is one object, or lines of JSON with the progress and, if asked for, every key that differs.
package diff
