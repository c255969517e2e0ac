package loadproc

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lowestPriority is the nice value of load processes.
	lowestPriority = 19
	// slice is for how long the kernel lets a thread of a load go on when another has woken. It is the
	// shortest that Linux takes; by default it is some milliseconds, whatever the priorities. Kernels before
	// 6.12 ignore it.
	slice = 100 * time.Microsecond
	// idleIO is the I/O priority of those who get what nobody else wants, as ioprio_set has it.
	idleIO = 3 << 13
	// oomScore makes the kernel take load processes first when the machine is out of memory.
	oomScore = 500
)

// isolated is set in the environment of a process that has isolated itself.
const isolated = "SEQUINS_LOAD_WORKER_ISOLATED"

// program is the path of this program: also after its file has been replaced, where /proc is mounted.
func program() string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self
	}
	if path, err := exec.LookPath(os.Args[0]); err == nil {
		return path
	}
	return os.Args[0]
}

// isolate gives the process the lowest priorities and has the kernel kill it when the node dies. To Linux, a
// priority is a thread's, and Go has several before main runs: so this one gets it and becomes the program
// again, whose threads all inherit from it. Where something fails the load is done all the same.
func isolate() {
	if os.Getenv(isolated) != "" {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_KEEP_POLICY, Nice: lowestPriority, Runtime: uint64(slice)}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil { // kernels and sandboxes may know only what is older
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowestPriority)
	}
	const thisThread = 1 // IOPRIO_WHO_PROCESS, which means a thread
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, thisThread, 0, idleIO)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o644)
	_ = unix.Exec(program(), os.Args, append(os.Environ(), isolated+"=1"))
}

// limitMemory bounds the private memory of this process, of which sorting takes some outside of Go's heap.
// What Go reserves and does not use is not counted by the kernel.
func limitMemory(limit, sorting int64) error {
	if limit <= 0 {
		return nil
	}
	debug.SetMemoryLimit(max(0, limit-sorting) / 4 * 3)
	if raceDetector { // which takes terabytes
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(limit), Max: uint64(limit)})
}
