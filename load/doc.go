// Package load turns the files of a version into its blocks.
//
// A version passes through here in two calls. Plan looks: which files there
// are, whether the job is done with them, what format they have, how many
// partitions that makes, and which function the job cut the files with. Every
// node comes to the same plan without asking another. Load then does the work
// for the partitions that its node wants, and publishes each block as soon as
// it is whole.
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
// Otherwise every file is read, and the records of wanted partitions are
// routed to them through an external sort.
//
// Where a key stands several times, the last record of the last file wins.
// Nothing depends on which goroutine was faster: files are split into lanes in
// the order of their names, within a lane they are read one after another, and
// where lanes meet the later one wins. Hence the same files make the same
// bytes on every node, whatever its cores and memory.
//
// Loading must not be felt by those who are being served meanwhile. All the
// goroutines of a load are locked to threads of the lowest priority, which end
// with them; and while there are loads, GOMAXPROCS is raised well above
// Options.Workers, so that the kernel, which knows of priorities, has a thread
// that serves to choose (internal/background). Bandwidth and Throttle in
// Options bound what a load takes further.
package load
