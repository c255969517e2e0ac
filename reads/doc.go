// Package reads owns what a read is: a database, a key and the wanted version go in; a value, its absence
// or the reason why there is none comes out.
//
// A front end (the fast lane of plain GETs and the handler of net/http, both in package server) keeps a
// pool of Reads. For each request it calls
//
//	Begin     counts the request as in flight
//	Trace     starts its span, if the request is traced
//	Do        looks the key up
//	Done      counts the result and ends the span
//	Release   lets go of the version and of a peer's connection
//
// and between Do and Release it renders what Do has found. It has no other logic.
//
// Do asks the catalog for the database's set of versions and acquires one of them: the current one, or the
// one that another node names. The version's partitioner names the partition of the key. If this node holds
// the partition, its block answers. If it does not, or if the block cannot be read, the nodes that hold the
// partition are asked (package proxy), except for a request that comes from another node: that is never
// passed on.
//
// A value of up to 64 KiB is in Read.Bytes. A larger one is read with Body, which verifies each chunk
// before it returns a byte of it; if the first chunk turns out to be damaged, Retry asks the other nodes.
//
// With Record, Do notes how long each step takes, and Explain returns how the key was looked up.
package reads
