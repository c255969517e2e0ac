// Package loadproc runs each load in a process that does nothing else meanwhile. A file that makes its reader crash or use too much
// memory ends that process and not the node, and loads do not share memory, garbage collector or scheduler
// with requests.
//
// A [Launcher] in the node starts a process for each load: the same program, which calls [Main]. The two
// exchange lines of JSON:
//
//	node                             load process
//	stdin:  {"job": …}       ──▶     lowers its priority, limits its memory, opens the source
//	                         ◀──     stdout: {"planned": manifest}
//	creates the directory, or closes stdin
//	{"load": staging, want}  ──▶     reads files, writes blocks under temporary names
//	                         ◀──     {"progress": …}, several times a second from the start
//	                         ◀──     the same with {"publish": partitions}: finished and verified
//	renames the blocks
//	{"limit": bytes}         ──▶     writes on; it asks, by its progress, before it writes more
//	{"bandwidth": share}     ──▶     at any time
//	                         ◀──     {"ended": …}
//
// The process exits when its standard input is closed, and the kernel kills it when the node dies. A node that starts
// meanwhile does not wait for it: only nodes give blocks their names, and the temporary names of two nodes differ.
//
// The node does not trust the process: a line that is too long, is not JSON or comes at the wrong time ends
// the process and fails the load, and so does silence. The load's error includes the standard error of the
// process, where the Go runtime reports a crash.
package loadproc
