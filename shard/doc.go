// Package shard owns the arithmetic between keys and partitions, and between
// partitions and nodes, and nothing else: it does no I/O, holds no state that
// outlives a call, and knows neither versions nor addresses.
//
// [Assign] says which nodes are to hold which partitions. Every node asks it for
// itself, with what it knows of the others, and has to come to the same answer.
//
// At a [Partitioner] two callers meet. A load asks which partition a record belongs to, and,
// through [Detector], which of the known functions a job cut its files with. A
// request asks the same question of the key in its URL. Both must get the same
// answer for ever, on every node: the functions are those of the Java programs
// that write the data, bit for bit, and are frozen.
package shard
