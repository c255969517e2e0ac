package node

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// startPercent makes the runtime collect garbage for the first time when the heap has 64 MiB: see runtime/debug.SetGCPercent,
// by which 100 means 4 MiB.
const startPercent = 1600

// collectLater lets the heap grow to 64 MiB before garbage is collected. While blocks are opened almost nothing becomes
// garbage, and collecting is a third of the work. After the first collection, or when resume is called, the heap grows as
// before.
func collectLater() (resume func()) {
	before := debug.SetGCPercent(startPercent)
	if before < 0 || before >= startPercent {
		debug.SetGCPercent(before)
		return func() {}
	}
	resume = sync.OnceFunc(func() { debug.SetGCPercent(before) })
	runtime.AddCleanup(new(sentinel), func(resume func()) { resume() }, resume)
	return resume
}

// A sentinel is garbage as soon as it is made.
type sentinel struct{ _ *sentinel }
