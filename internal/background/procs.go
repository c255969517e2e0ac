// Package background owns how work that nobody waits for, which is loading, keeps
// out of the way of requests. It is done on threads of the lowest priority
// ([LowerPriority]), between [Begin] and its end, so that there is always a
// thread of the usual priority for the kernel to run instead.
package background

import (
	"runtime"
	"sync"
)

// procs are the processors of the Go scheduler, which are the process's: how
// much goes on in the background, and how many there were before.
var procs struct {
	sync.Mutex
	going, before int
}

// Begin lets the kernel run requests before what begins, whose threads have the
// lowest priority, until end is called. It can choose only among goroutines
// that the Go scheduler runs, which knows nothing of priorities: were as many
// of them loading as it runs at a time, a request would wait for the 10 ms
// after which it interrupts one. A load has a goroutine for each processor, and
// a few more where it merges what it has sorted, but most of those wait.
//
// Begin and end stop the Go scheduler for a moment, and so belong to a goroutine
// of the usual priority: one of the lowest, on a machine that is busy with
// something else, would keep everything waiting until it has its turn.
//
// It is not so all the time, as more threads than processors take turns when
// all are busy, and a request waits for its turn.
func Begin() (end func()) {
	procs.Lock()
	defer procs.Unlock()
	if procs.going++; procs.going == 1 {
		procs.before = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(2*procs.before + 4)
	}
	return stop
}

func stop() {
	procs.Lock()
	defer procs.Unlock()
	if procs.going--; procs.going == 0 {
		runtime.GOMAXPROCS(procs.before)
	}
}

// Processors is what GOMAXPROCS is when nothing goes on in the background.
func Processors() int {
	procs.Lock()
	defer procs.Unlock()
	if procs.going > 0 {
		return procs.before
	}
	return runtime.GOMAXPROCS(0)
}
