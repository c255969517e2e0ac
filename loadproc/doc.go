// Package loadproc runs loads in processes of their own, so that a file that makes its reader take too much
// memory, or crash, ends that process and not the node; and so that requests share no memory, garbage
// collector or scheduler with loads.
//
// A [Launcher] in the node starts a process for each load: the program of the node again, which calls [Main].
// The two speak in lines of JSON:
//
//	node                             load process
//	stdin:  Job              ──▶     lowers its priority, limits its memory, opens the source
//	                         ◀──     stdout: {"planned": manifest}
//	makes the directory, or closes stdin
//	{"load": where and what} ──▶     reads files, writes blocks under temporary names
//	                         ◀──     {"progress": …}, several times a second from the start on
//	                         ◀──     the same with {"publish": partitions}: finished, and verified
//	gives the blocks their names
//	{"bandwidth": share}     ──▶     at any time
//	                         ◀──     {"ended": …}
//
// The process ends when its standard input does, and is killed by the kernel when the node dies. It holds the
// lock of the store, which it inherits, until then: a node that is started meanwhile waits for it.
//
// The node believes nothing that a process says beyond what it can check: a line that is too long, is not
// JSON or comes at the wrong time ends the process and the load, and so does silence. What the process prints
// on its standard error, which is the last words of the Go runtime, is part of the load's error.
package loadproc
