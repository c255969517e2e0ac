// Package load turns the files of a version into blocks.
//
// A version is loaded in two calls. Plan lists the files, checks that the job that writes them is done,
// and decides on the format, the number of partitions and the partitioner. All nodes make the same plan
// without communicating, unless a record refutes what one of them has detected. LoadInto then builds
// the blocks of the partitions that the node wants, and publishes them as they are finished.
//
// One goroutine reads a record, decodes it and passes it to a sink, without a lock or an allocation:
//
//	aligned    file ─▶ block                            one worker per partition
//	           file ─▶ Sorter ─▶ block                  if the keys are not sorted
//	routed     files ─▶ Sorters ┐                       one lane per group of files
//	           Sorters ─ merge ─▶ block ─▶ block …      one shard per group of partitions
//
// If there are fewer partitions or lanes than cores, reading and the sink run in two goroutines, and
// records pass between them in batches.
//
// A version is aligned if file i holds partition i. Then only the files of the wanted partitions are
// opened, and every record in them is checked to belong there. The first attempt is a single pass,
// because jobs mostly write sorted files; at the first key that is not greater than its predecessor, the
// block is discarded and the file is read again, into an external sort. An unsorted file shows this
// within its first few records, so little is read twice, and a sorted file costs nothing extra.
//
// The partitioner is configured or detected from a sample. Candidates are the functions that fit each
// sampled key, and the first one is chosen. A record in the wrong file refutes it permanently: LoadInto
// fails with ErrRefuted, and its caller plans again with what Refutes returns. After at most four such
// rounds no function is left, and every file is read. Candidates depend only on the files, so all nodes
// go through the same plans; of two nodes, the one with the later plan (Later) knows more, and the
// other repeats its plan (Options.PlannedBy).
//
// If the version is not aligned, every file is read, and an external sort routes the records of wanted
// partitions to them.
//
// If a key occurs several times, the last record of the last file wins. The result does not depend on
// timing: files are split into lanes in the order of their names, a lane reads its files one after
// another, and in a merge of lanes the later one wins. The same files therefore make the same bytes on
// every node, regardless of its cores and memory.
//
// A version of finished blocks (package finished) is not read record by record: the files of the wanted
// partitions are copied, hashed meanwhile, and their hashes compared with those of the manifest (copy.go).
//
// A finished block is published only after the source has been listed again and still has the files of
// the plan, with the same sizes, times and identities. The blocks are therefore of one version, not of
// a mixture.
//
// A node runs loads in separate processes, see package loadproc. Bandwidth and Throttle in Options
// limit them further.
package load
