package gate

import (
	"bytes"
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"sequins/blocks"
	"sequins/version"
)

// Shadows compares the presence of keys that clients read in the version that is served and in one that is judged. It is
// safe for concurrent use.
type Shadows struct {
	reads   chan shadowed
	mu      sync.Mutex                         // held to replace targets
	targets atomic.Pointer[map[string]*Shadow] // by db; read-only, replaced as a whole; nil if there are none
}

// shadowed is a key that a client has read.
type shadowed struct {
	target *Shadow
	key    []byte
}

// maxShadowed limits the keys that wait. Others are not compared.
const maxShadowed = 256

// NewShadows returns Shadows, which compare while Run runs.
func NewShadows() *Shadows { return &Shadows{reads: make(chan shadowed, maxShadowed)} }

// Shadow is the comparison of two versions of a database.
type Shadow struct {
	served, judged func() *version.Handle // acquire the versions; nil if they are gone
	want           int64
	enough         func() // called once when want keys have been compared

	keys, differing atomic.Int64
}

// Sample returns how many keys have been compared, and how many of them only one of the versions has.
func (s *Shadow) Sample() Sample { return Sample{s.keys.Load(), s.differing.Load()} }

// Acquire returns a function that acquires a version of a set: nil if it is gone.
func Acquire(set *version.Set, v *version.Version) func() *version.Handle {
	info := v.Info()
	return func() *version.Handle { return set.AcquireVersion(version.Name(info.Name), info.Plan) }
}

// Start begins to compare two versions of a db in place of those before, and calls enough when want keys have been
// compared. served and judged acquire the versions.
func (s *Shadows) Start(db string, served, judged func() *version.Handle, want int64, enough func()) *Shadow {
	t := &Shadow{served: served, judged: judged, want: want, enough: enough}
	s.replace(func(m map[string]*Shadow) { m[db] = t })
	return t
}

// Stop ends the comparison of a db.
func (s *Shadows) Stop(db string) { s.replace(func(m map[string]*Shadow) { delete(m, db) }) }

func (s *Shadows) replace(change func(m map[string]*Shadow)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	targets := make(map[string]*Shadow)
	if old := s.targets.Load(); old != nil {
		targets = maps.Clone(*old)
	}
	if change(targets); len(targets) == 0 {
		s.targets.Store(nil)
		return
	}
	s.targets.Store(&targets)
}

// Offer tells of a key that a client reads. It never waits, and keeps neither db nor key.
func (s *Shadows) Offer(db, key []byte) {
	targets := s.targets.Load()
	if targets == nil {
		return
	}
	if t := (*targets)[string(db)]; t != nil && t.keys.Load() < t.want {
		select {
		case s.reads <- shadowed{t, bytes.Clone(key)}:
		default:
		}
	}
}

// Run compares until ctx ends.
func (s *Shadows) Run(ctx context.Context) {
	var scratch [2]blocks.Scratch
	for {
		select {
		case r := <-s.reads:
			r.target.compare(r.key, &scratch)
		case <-ctx.Done():
			return
		}
	}
}

// compare looks a key up in both versions. A key whose partitions are not both on this node is left out.
func (s *Shadow) compare(key []byte, scratch *[2]blocks.Scratch) {
	if s.keys.Load() >= s.want {
		return
	}
	before, ok := has(s.served, key, &scratch[0])
	if !ok {
		return
	}
	after, ok := has(s.judged, key, &scratch[1])
	if !ok {
		return
	}
	if before != after {
		s.differing.Add(1)
	}
	if s.keys.Add(1) == s.want {
		s.enough()
	}
}

// has reports whether a version has a key. ok is false if that cannot be told here.
func has(acquire func() *version.Handle, key []byte, s *blocks.Scratch) (found, ok bool) {
	h := acquire()
	if h == nil {
		return false, false
	}
	defer h.Release()
	if h.Partitions() == 0 {
		return false, true
	}
	_, found, err := h.Get(h.Partition(key), key, s)
	return found, err == nil
}
