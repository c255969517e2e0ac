// Package load turns the files of a version into its blocks.
//
// A version passes through here in two calls. Plan looks: which files there
// are, whether the job is done with them, what format they have, how many
// partitions that makes, and which function the job cut the files with. Every
// node comes to the same plan without asking another. LoadInto then does the
// work for the partitions that its node wants, and publishes blocks as they are
// finished.
//
// A record is read, decoded and given to a sink by one goroutine, without a lock
// or an allocation:
//
//	aligned    file ─▶ block                            one worker a partition
//	           file ─▶ Sorter ─▶ block                  once a key descends
//	routed     files ─▶ Sorters ┐                       one lane a group of files
//	           Sorters ─ merge ─▶ block ─▶ block …      one shard a group of partitions
//
// Where there are fewer partitions or lanes than cores, reading and what comes
// after it go on in two goroutines, between which records pass in batches;
// likewise the lanes of a merge.
//
// A version is aligned where file i holds partition i: then only the files of
// the wanted partitions are opened, and every record in them is proven to
// belong. It is tried in one pass, as jobs mostly sort what they write; at the
// first key that is smaller than the one before, the block is given up and the
// file read again, into an external sort. A file that is not sorted shows it
// within its first few records, so that little is read twice, and a file that
// is sorted never pays for the possibility.
//
// Which function cut the files is configured or found in a sample: candidates
// are the functions that fit each sampled key, and the first is tried. A record
// that is not where it should be refutes it, for good: Load fails with
// ErrRefuted, and its caller plans again with what Refutes returns. After at most
// four such rounds no function is left, and every file is read. Candidates depend
// on the files alone, so nodes that share their refuted functions end with the
// same plan.
//
// Otherwise every file is read, and the records of wanted partitions are
// routed to them through an external sort.
//
// Where a key stands several times, the last record of the last file wins.
// Nothing depends on which goroutine was faster: files are split into lanes in
// the order of their names, within a lane they are read one after another, and
// where lanes meet the later one wins. Hence the same files make the same
// bytes on every node, whatever its cores and memory.
//
// A finished block gets the name under which it counts only after the source
// has been listed again and has the files of the plan, with their sizes, times
// and identities: what was read is then one version and no mixture.
//
// A node loads in processes of their own, which package loadproc keeps out of
// the way of requests. Bandwidth and Throttle in Options bound what a load takes
// further.
package load
