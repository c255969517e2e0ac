package loadproc

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// A process that has carried out a small load well can carry out another one. Starting a process takes about as much processor
// time as loading 5 MB, which counts when many small databases are loaded.
const (
	// maxSmall is how many bytes a small load reads from the source. The process of another one is not used again, so that each large
	// load begins with all of its memory.
	maxSmall = 64 << 20
	// spareTime is how long a process waits for another load.
	spareTime = 250 * time.Millisecond
)

// workers returns how many workers a load should have: one, if it is small and other loads use the processors; 0 for the default. The
// workers of one load hand records to each other, which costs a tenth of its time.
func (p *Process) workers() int {
	l := p.launcher
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.source > 0 && p.source <= maxSmall && len(l.running) > runtime.GOMAXPROCS(0) {
		return 1
	}
	return 0
}

// spares are processes that wait for another load.
type spares struct {
	mu      sync.Mutex
	closed  bool
	all     []*spare
	waiting sync.WaitGroup // of their ends
}

type spare struct {
	*child
	timer *time.Timer
}

// keep takes over a process, unless the spares are closed.
func (s *spares) keep(c *child) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	each := &spare{child: c}
	s.waiting.Add(1)
	each.timer = time.AfterFunc(spareTime, func() { s.drop(each) })
	s.all = append(s.all, each)
	return true
}

// take returns a process with a memory limit, nil if there is none.
func (s *spares) take(memoryLimit int64) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(each *spare) bool { return each.memoryLimit == memoryLimit && each.timer.Stop() })
	if i < 0 {
		return nil
	}
	c := s.all[i].child
	s.all = slices.Delete(s.all, i, i+1)
	s.waiting.Done()
	return c
}

// drop ends a process whose time is over.
func (s *spares) drop(each *spare) {
	s.mu.Lock()
	if i := slices.Index(s.all, each); i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
	}
	s.mu.Unlock()
	each.end()
	s.waiting.Done()
}

// close ends all processes and waits for that. keep takes over none afterwards.
func (s *spares) close() {
	s.mu.Lock()
	s.closed = true
	for _, each := range s.all {
		if each.timer.Stop() {
			go s.drop(each)
		}
	}
	s.mu.Unlock()
	s.waiting.Wait()
}
