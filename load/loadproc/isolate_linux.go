package loadproc

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// lowestPriority is the nice value of load processes.
	lowestPriority = 19
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
	_ = unix.Setpgid(0, 0)
	lowerPriorities()
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o644)
	lowerPriorities() // of threads that were being created
}

// lowerPriorities sets the lowest priorities of the threads of this process, and of those that they start. On Linux priorities belong
// to threads, and Go starts several before main runs; the calls for a process group set them for all threads of its processes. They are not
// looked for in /proc/self/task: when a thread that was looked at there ends, the kernel clears its entry away at the thread's priority, and
// meanwhile the node, in wait4, keeps a processor busy; with a single processor that takes seconds.
func lowerPriorities() {
	const group = 2 // IOPRIO_WHO_PGRP
	own := os.Getpid()
	if unix.Setpriority(unix.PRIO_PGRP, own, lowestPriority) != nil { // a sandbox may forbid groups
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowestPriority)
	}
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, group, uintptr(own), idleIO)
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
