// Package collect delays garbage collections while a node starts.
package collect

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// startPercent makes the first garbage collection start at a heap of 64 MiB: with 100 it starts at 4
// MiB, see runtime/debug.SetGCPercent.
const startPercent = 1600

// Later lets the heap grow to 64 MiB before garbage is collected. Opening blocks produces almost
// no garbage, and collections would be a third of the work. The normal setting is restored by the first
// collection or by resume.
func Later() (resume func()) {
	before := debug.SetGCPercent(startPercent)
	if before < 0 || before >= startPercent {
		debug.SetGCPercent(before)
		return func() {}
	}
	resume = sync.OnceFunc(func() { debug.SetGCPercent(before) })
	runtime.AddCleanup(new(sentinel), func(resume func()) { resume() }, resume)
	return resume
}

// A sentinel becomes garbage immediately; its cleanup detects the first collection.
type sentinel struct{ _ *sentinel }
