// Package shard owns the arithmetic between keys and partitions, and nothing
// else: it does no I/O, holds no state that outlives a call, and knows neither
// versions nor nodes.
//
// Two callers meet here. A load asks which partition a record belongs to, and,
// through [Detector], which of the known functions a job cut its files with. A
// request asks the same question of the key in its URL. Both must get the same
// answer for ever, on every node: the functions are those of the Java programs
// that write the data, bit for bit, and are frozen.
package shard
