package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time that this process has used, all threads together, to the nanosecond.
func CPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(ts.Nano())
}

func self() unix.Rusage {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // there is no such error for this argument
	}
	return u
}

// Reads is what this process has caused to be read from disks.
type Reads struct {
	Calls       int64 // system calls of the read family, /proc/self/io
	Bytes       int64 // fetched from a disk, page faults included, /proc/self/io
	MajorFaults int64 // page faults that waited for a disk, getrusage
	Device      int64 // read requests that the disk has answered, of all processes, /sys/dev/block
}

// Sub returns what came since.
func (r Reads) Sub(since Reads) Reads {
	return Reads{r.Calls - since.Calls, r.Bytes - since.Bytes, r.MajorFaults - since.MajorFaults, r.Device - since.Device}
}

// ReadsSoFar returns the reads until now; Device counts those of the disk that holds path.
func ReadsSoFar(path string) (Reads, error) {
	r := Reads{MajorFaults: self().Majflt}
	var err error
	if r.Device, err = deviceReads(path); err != nil {
		return r, err
	}
	r.Calls, r.Bytes, err = readsOf("self")
	return r, err
}

// BytesReadBy is how many bytes a process has caused to be fetched from disks.
func BytesReadBy(pid int) (int64, error) {
	_, n, err := readsOf(strconv.Itoa(pid))
	return n, err
}

func readsOf(pid string) (calls, bytes int64, err error) {
	b, err := os.ReadFile("/proc/" + pid + "/io")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "syscr":
			calls = n
		case "read_bytes":
			bytes = n
		}
	}
	return calls, bytes, nil
}

func deviceReads(path string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return 0, fmt.Errorf("the disk of %s: %w", path, err)
	}
	fields := strings.Fields(string(b))
	if len(fields) == 0 {
		return 0, fmt.Errorf("the disk of %s counts nothing", path)
	}
	return strconv.ParseInt(fields[0], 10, 64)
}

// tick is the unit of /proc/PID/stat: USER_HZ, which is 100 on every system that Go runs on.
const tick = 10 * time.Millisecond

// CPUOf is the processor time that a process and its children, dead or alive, have used, to 10 ms each.
func CPUOf(pid int) (time.Duration, error) {
	own, dead, err := timesOf(pid)
	if err != nil {
		return 0, err
	}
	living, err := livingChildren(pid)
	if err != nil {
		return 0, err
	}
	if _, now, err := timesOf(pid); err == nil && now != dead { // a child that ended in between can be missing from both
		return CPUOf(pid)
	}
	return own + dead + living, nil
}

// timesOf is the processor time of a process and that of the children that it has waited for.
func timesOf(pid int) (own, dead time.Duration, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name, in parentheses, may hold anything; utime is the 12th field behind it.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat: too short", pid)
	}
	var times [4]time.Duration // utime stime cutime cstime
	for i, f := range fields[11:15] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		times[i] = time.Duration(n) * tick
	}
	return times[0] + times[1], times[2] + times[3], nil
}

// livingChildren is the processor time of the children of a process that it has not waited for.
func livingChildren(pid int) (sum time.Duration, err error) {
	children, err := childrenOf(pid)
	if err != nil {
		return 0, err
	}
	for _, child := range children {
		if own, dead, err := timesOf(child); err == nil { // else it has just ended
			sum += own + dead
		}
	}
	return sum, nil
}

// childrenOf looks at the threads of a process. It must not do so with a load: while threads that were looked at end at a
// lower priority than their parent's, the kernel keeps the parent busy in wait4, up to seconds on one processor.
func childrenOf(pid int) ([]int, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	var children []int
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}

// PeakMemory is the most memory that a process has had resident, in bytes: VmHWM. What exec took over
// from its parent is not in it, unlike in getrusage.
func PeakMemory(pid int) (int64, error) { return memoryOf(pid, "VmHWM:") }

// AnonymousMemory is how much memory a process and its children have resident together, in bytes, apart from that of
// files.
func AnonymousMemory(pid int) (int64, error) {
	sum, err := memoryOf(pid, "RssAnon:")
	if err != nil {
		return 0, err
	}
	children, err := childrenOf(pid)
	if err != nil {
		return 0, err
	}
	for _, child := range children {
		if n, err := memoryOf(child, "RssAnon:"); err == nil { // else it has just ended
			sum += n
		}
	}
	return sum, nil
}

// memoryOf is a number in /proc/PID/status, in bytes.
func memoryOf(pid int, key string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", pid, key)
}
