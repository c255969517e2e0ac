// Package shard owns the functions from keys to partitions and from partitions to nodes. It does no I/O, keeps no state
// between calls, and knows neither versions nor addresses.
//
// [Assign] assigns partitions to nodes. Every node calls it with its own view of the cluster and must get the same
// result.
//
// [Partitioner] maps keys to partitions. A load uses it to find the partition of a record and, through [Detector],
// which of the known functions a job has partitioned its files with; a request uses it to find the partition of its
// key. Both must get the same result forever, on every node: the functions are those of the Java programs that write
// the data, bit for bit, and are frozen.
package shard
