package loadproc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sequins/test/expect"

	"golang.org/x/sys/unix"
)

// All threads of a load process have the lowest priorities, and its memory is limited.
func TestIsolated(t *testing.T) {
	w := newWorld(t)
	p := w.start(t.Context(), slowJob())
	w.plan(p)
	pid := p.cmd.Process.Pid
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	expect.NoError(t, err)
	if len(tasks) < 2 {
		t.Errorf("%d threads", len(tasks))
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		expect.NoError(t, err)
		if nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || 20-nice != lowestPriority {
			t.Errorf("thread %d has nice %d, %v", tid, 20-nice, err)
		}
		const class = 1
		if io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, class, uintptr(tid), 0); errno != 0 || io != idleIO {
			t.Errorf("thread %d has I/O priority %x, %v", tid, io, errno)
		}
	}
	var limit unix.Rlimit
	expect.NoError(t, unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &limit))
	if want := uint64(testJob.MemoryLimit); !raceDetector && (limit.Cur != want || limit.Max != want) {
		t.Errorf("its memory is limited to %+v", limit)
	}
	score, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"))
	expect.NoError(t, err)
	if strings.TrimSpace(string(score)) != strconv.Itoa(oomScore) {
		t.Errorf("its oom_score_adj is %s", score)
	}
}
