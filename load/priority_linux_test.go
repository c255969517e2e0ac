package load

import (
	"context"
	"io"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sequins/internal/background"
	"sequins/sequencefile"
	"sequins/shard"
)

// nice returns the nice value of a thread. The system call returns 20 less it.
func nice(t *testing.T, tid int) int {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		t.Error(err)
	}
	return 20 - n
}

// threads returns the nice values of this process's threads, by thread.
func threads(t *testing.T) map[int]int {
	t.Helper()
	all := map[int]int{}
	for _, e := range check(os.ReadDir("/proc/self/task"))(t) {
		tid := check(strconv.Atoi(e.Name()))(t)
		if n, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err == nil { // it may be gone by now
			all[tid] = 20 - n
		}
	}
	return all
}

// Files are read on threads of the lowest priority, and when the load is done
// no other goroutine can come to run on one of them.
func TestPriority(t *testing.T) {
	if nice(t, unix.Gettid()) == background.LowestPriority { // loading threads never come to run this
		t.Fatal("everything here has the lowest priority: run this without nice 19")
	}
	w := newWorld(t)
	w.write(cut(shard.Hadoop, 3, keys(1000)...), sequencefile.WriterOptions{})
	for _, partitioner := range []string{"auto", "string"} {
		w.newStore()
		var mu sync.Mutex
		low, other := map[int]bool{}, 0
		src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
			return body{ReadCloser: f, read: func(p []byte) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				if tid := unix.Gettid(); nice(t, tid) == background.LowestPriority {
					low[tid] = true
				} else {
					other++
				}
				return f.Read(p)
			}}
		}}
		l := New(src, w.store, nil, Options{Partitioner: partitioner})
		plan := check(l.Plan(t.Context(), "db", "1"))(t)
		if err := l.Load(context.Background(), plan, all(plan), nil); err != nil {
			t.Fatal(err)
		}
		if len(low) == 0 || other > 0 {
			t.Errorf("%s: %d reading threads have the lowest priority, %d reads were by others", partitioner, len(low), other)
		}
	}
	// A thread ends a moment after its goroutine. The process's first one
	// cannot end; the scheduler parks it for good.
	deadline := time.Now().Add(10 * time.Second)
	for {
		left := 0
		for tid, n := range threads(t) {
			if n == background.LowestPriority && tid != os.Getpid() {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d threads of the lowest priority are left", left)
		}
		time.Sleep(time.Millisecond)
	}
}
