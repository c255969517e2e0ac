package load

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// lowestPriority is the nice value of loading threads.
const lowestPriority = 19

// lowerPriority binds the calling goroutine to its thread and gives that the
// lowest priority. The thread must never run anything else: the goroutine must
// not unlock it, and has to end, with which the thread ends too. To Linux, a
// priority is a thread's, whatever POSIX says.
//
// Where it fails the load still works, at the priority of everything else.
func lowerPriority() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), lowestPriority)
}
