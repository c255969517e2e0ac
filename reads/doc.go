// Package reads looks up keys: a database, a key and a wanted version go in; a value, its absence, or the
// reason why there is neither comes out.
//
// A front end (the loop for plain GETs or the handler of net/http, both in package server) keeps a pool of
// Reads. For each request it calls
//
//	Begin     counts the request as in flight
//	Trace     starts its span, if the request is traced
//	Do        looks the key up
//	Done      counts the result and ends the span
//	Release   releases the version and the connection to a peer
//
// and between Do and Release it renders the result. It has no other logic.
//
// Do gets the database's set of versions from the catalog and acquires one of them: the current one, or the
// one that another node names. The version's partitioner computes the partition of the key. If this node
// holds the partition, its block answers. If it does not, or if the block cannot be read, package proxy asks
// the nodes that hold it. Requests from other nodes are never forwarded.
//
// A value of up to 64 KiB is in Read.Bytes. A larger one is read with Body, which verifies each chunk before
// it returns a byte of it. If a chunk is damaged or a node breaks off, Body goes on with other nodes.
//
// Scan reads the records of a range in order, of one version. It merges sources (package merge): an iterator for each local
// block, and a pager (scansource.go) for partitions that the same other nodes hold, which they answer with Page (page.go).
// The sources of a block or a node that fails are opened again elsewhere, behind the last key. Count counts a range.
//
// Compare acquires two versions by name, also ones that are not served, and scans them partition by partition for package diff. It asks
// the nodes that report a partition, and skips those of equal summaries (summary.go).
//
// If Timed is set, Explain returns how the key was looked up, and how long that took.
package reads
