// Package diff compares two versions of a database: which keys the new one has added, removed and changed.
//
// A request goes through Handler. It merges two ordered reads of package reads for one partition after the other; those of
// equal hashes are not read. Blocks of this node are read here, others from the nodes that hold them. Versions that are
// partitioned differently are compared as a whole.
//
// The answer is one object, or lines of JSON with the progress and, if asked for, every key that differs.
package diff
