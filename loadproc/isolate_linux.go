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
	// slice is for how long the kernel lets a thread of a load go on when another has woken. It is the
	// shortest that Linux takes; by default it is some milliseconds, whatever the priorities. Kernels before
	// 6.12 ignore it.
	slice = 100 * time.Microsecond
	// idleIO is the I/O priority of those who get what nobody else wants, as ioprio_set has it.
	idleIO = 3 << 13
	// oomScore makes the kernel take load processes first when the machine is out of memory.
	oomScore = 500
)

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

// isolate gives the process the lowest priorities and has the kernel kill it when the node dies. Where
// something fails the load is done all the same.
func isolate() {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o644)
	lowered := make(map[int]bool)
	for lowerThreads(lowered) {
	}
}

// lowerThreads gives the lowest priorities to the threads of this process that are not in lowered, enters
// them, and reports whether there were any. To Linux, a priority is a thread's, and Go has several before main
// runs. A thread inherits the priorities of the one that starts it: once a look finds no new thread, none is
// left, and none comes, that has others.
func lowerThreads(lowered map[int]bool) bool {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil { // without /proc, this thread and those that it starts
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

// lower gives a thread, 0 for the calling one, the lowest priorities.
func lower(tid int) {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_KEEP_POLICY, Nice: lowestPriority, Runtime: uint64(slice)}
	if err := unix.SchedSetAttr(tid, &attr, 0); err != nil { // kernels and sandboxes may know only what is older
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, lowestPriority)
	}
	const thread = 1 // IOPRIO_WHO_PROCESS, which means a thread
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, thread, uintptr(tid), idleIO)
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
