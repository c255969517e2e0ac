package load

import (
	"runtime"
	"sync"
)

// procs are the processors of the Go scheduler, which are the process's: how
// many loads go on, and how many there were before the first of them.
var procs struct {
	sync.Mutex
	loads, before int
}

// moreProcs lets the kernel run requests before loads, whose threads have the
// lowest priority, until fewer is called. It can choose only among goroutines
// that the Go scheduler runs, which knows nothing of priorities: were as many
// of them loading as it runs at a time, a request would wait for the 10 ms
// after which it interrupts one. A load has a goroutine for each processor, and
// a few more where it merges what it has sorted, but most of those wait.
//
// It is not so all the time, as more threads than processors take turns when
// all are busy, and a request waits for its turn.
func moreProcs() (fewer func()) {
	procs.Lock()
	defer procs.Unlock()
	if procs.loads++; procs.loads == 1 {
		procs.before = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(2*procs.before + 4)
	}
	return fewerProcs
}

func fewerProcs() {
	procs.Lock()
	defer procs.Unlock()
	if procs.loads--; procs.loads == 0 {
		runtime.GOMAXPROCS(procs.before)
	}
}

// processors is what GOMAXPROCS is without loads.
func processors() int {
	procs.Lock()
	defer procs.Unlock()
	if procs.loads > 0 {
		return procs.before
	}
	return runtime.GOMAXPROCS(0)
}
