package blocks

import (
	"slices"
	"sync"
)

// workspace is memory that a writer needs whatever it writes, used again by the next one. Left to the garbage
// collector it makes that run a few times for each block, and where a thread of a load, which has the lowest
// priority, is interrupted in sweeping, the collector's own goroutine waits for it in a busy loop: on one
// processor, loads took twice as long.
type workspace struct {
	out   []byte
	index indexBuilder
	bins  hashBins
}

// maxKeptIndex is how many bytes an index may take for its memory to be used again.
const maxKeptIndex = 16 << 20

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

func newWorkspace() *workspace { return workspaces.Get().(*workspace) }

// room returns an empty slice to which n bytes can be appended.
func (w *workspace) room(n int) []byte { return slices.Grow(w.out[:0], n) }

// release gives it back. What has grown out of proportion is not kept.
func (w *workspace) release() {
	w.index.reset()
	if w.index.memory() > maxKeptIndex {
		w.index = indexBuilder{}
	}
	if cap(w.out) > 2*writeSize {
		w.out = nil
	}
	workspaces.Put(w)
}
