package blocks

import "sync"

// workspace is memory that a writer needs whatever it writes, used again by the next one. Left to the garbage
// collector it makes that run a few times for each block, which is felt: see newWorkspace.
type workspace struct {
	out   []byte
	index indexBuilder
	bins  hashBins
}

const (
	usualPages   = 16 << 10 // of a block: 64 MiB of pages of 4 KiB
	usualIndex   = 12       // bytes of a separator
	maxKeptIndex = 16 << 20 // bytes that an index may take for its memory to be used again
)

var workspaces sync.Pool // of *workspace

// newWorkspace returns one whose out has room for n bytes.
//
// A new one is made by a goroutine of its own. Whoever allocates much has to sweep for the garbage collector
// first, and if it is a load's it does so on a thread of the lowest priority. When such a thread is interrupted,
// the collector's own goroutine waits for it in a busy loop, at the usual priority: on one processor, loads took
// twice as long, and requests waited for 20 ms.
func newWorkspace(n int) *workspace {
	if w, _ := workspaces.Get().(*workspace); w != nil && cap(w.out) >= n {
		return w
	}
	made := make(chan *workspace)
	go func() {
		made <- &workspace{out: make([]byte, 0, n), index: indexBuilder{
			separators: make([]byte, 0, usualPages*usualIndex),
			ends:       make([]int, 0, usualPages),
			locations:  make([]location, 0, usualPages),
		}}
	}()
	return <-made
}

// release gives it back. What has grown out of proportion is not kept.
func (w *workspace) release() {
	w.index.reset()
	if w.index.memory() > maxKeptIndex || cap(w.out) > 2*writeSize {
		return
	}
	workspaces.Put(w)
}
