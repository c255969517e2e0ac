package background

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// LowestPriority is the nice value of threads that work in the background.
	LowestPriority = 19
	// slice is for how long the kernel lets such a thread go on when another
	// has woken. It is the shortest that Linux takes; by default it is some
	// milliseconds, whatever the priorities. Kernels before 6.12 pass over it.
	slice = 100 * time.Microsecond
)

// LowerPriority binds the calling goroutine to its thread and gives that the
// lowest priority. The thread must never run anything else: the goroutine must
// not unlock it, and has to end, with which the thread ends too. To Linux, a
// priority is a thread's, whatever POSIX says.
//
// Where it fails the work is done all the same, at the priority of everything
// else.
func LowerPriority() {
	runtime.LockOSThread()
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_KEEP_POLICY, Nice: LowestPriority, Runtime: uint64(slice)}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil { // kernels and sandboxes may know only what is older
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, LowestPriority)
	}
}
