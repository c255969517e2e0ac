package loadproc

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lowestPriority is the nice value of load processes.
	lowestPriority = 19
	// slice is how long a thread of a load keeps the CPU when another thread wakes up. It is the shortest
	// that Linux accepts; the default is some milliseconds, regardless of priority. Kernels before 6.12
	// ignore it.
	slice = 100 * time.Microsecond
	// idleIO is the idle class of ioprio_set: only I/O time that no other process uses.
	idleIO = 3 << 13
	// oomScore makes the OOM killer choose load processes first.
	oomScore = 500
)

// program returns the path of this program. With /proc mounted, it is valid even after the file was replaced.
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

// isolate sets the lowest priorities and makes the kernel kill the process when the node dies. Errors are
// ignored: the load works without.
func isolate() {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o644)
	lowered := make(map[int]bool)
	for lowerThreads(lowered) {
	}
}

// lowerThreads sets the lowest priorities of the threads of this process that are not in lowered, adds them
// to it, and reports whether there were any. On Linux priorities belong to threads, and Go starts several
// before main runs. A new thread inherits the priorities of its creator, so no thread with other priorities
// is left after a pass that finds none.
func lowerThreads(lowered map[int]bool) bool {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil { // without /proc: this thread, and those that it starts
		lower(0)
		return false
	}
	found := false
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil || lowered[tid] {
			continue
		}
		lower(tid)
		lowered[tid], found = true, true
	}
	return found
}

// lower sets the lowest priorities of a thread; tid 0 is the calling thread.
func lower(tid int) {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_KEEP_POLICY, Nice: lowestPriority, Runtime: uint64(slice)}
	if err := unix.SchedSetAttr(tid, &attr, 0); err != nil { // older kernels and some sandboxes lack the call or the flags
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, lowestPriority)
	}
	const thread = 1 // IOPRIO_WHO_PROCESS, which means a thread
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, thread, uintptr(tid), idleIO)
}

// limitMemory limits the private memory of this process, and Go's heap to a part of what sorting leaves. The
// kernel does not count memory that Go has reserved and does not use.
func limitMemory(limit, sorting int64) error {
	if limit <= 0 {
		return nil
	}
	debug.SetMemoryLimit(max(0, limit-sorting) / 4 * 3)
	if raceDetector { // it reserves terabytes
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(limit), Max: uint64(limit)})
}
