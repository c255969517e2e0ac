package version

import (
	"fmt"
	"maps"
	"sync/atomic"
	"time"
)

// A Set holds the versions of one database that can be read. Acquire and
// AcquireVersion are for everybody and never block; the other methods are for
// the one goroutine that owns the database.
type Set struct {
	db      string
	current atomic.Pointer[Version]
	named   atomic.Pointer[map[string]*Version] // never changed, only replaced
	reports chan Corruption
}

// A Corruption says that a block was found damaged while it was read.
type Corruption struct {
	Version   string
	Partition int
	Err       error

	version *Version
	slot    *slot
}

// maxReports is how many corrupt blocks may wait to be heard of. Those beyond
// are reported when they are read again.
const maxReports = 64

// NewSet returns an empty set.
func NewSet(db string) *Set {
	s := &Set{db: db, reports: make(chan Corruption, maxReports)}
	s.named.Store(&map[string]*Version{})
	return s
}

// DB returns the name of the database.
func (s *Set) DB() string { return s.db }

// Acquire returns a handle on the current version; nil if there is none.
func (s *Set) Acquire() *Handle {
	for {
		v := s.current.Load()
		if v == nil {
			return nil
		}
		if v.acquire() {
			return (*Handle)(v)
		}
		// It was replaced and shut since the Load: there is another one now.
	}
}

// AcquireVersion returns a handle on a version by its name, be it prepared,
// current or retired; nil if it is not here. It keeps a retired version from
// being removed for another while.
func (s *Set) AcquireVersion(name string) *Handle {
	v := (*s.named.Load())[name]
	if v == nil || !v.acquire() {
		return nil
	}
	if v.retired.Load() {
		v.used.Store(int64(time.Since(v.retiredAt)))
	}
	return (*Handle)(v)
}

// Version returns a version by its name; nil if it is not in the set.
func (s *Set) Version(name string) *Version { return (*s.named.Load())[name] }

// Current returns the name of the current version; "" if there is none.
func (s *Set) Current() string {
	if v := s.current.Load(); v != nil {
		return v.info.Name
	}
	return ""
}

// Corruptions is where damaged blocks are heard of, each once until it has
// been replaced.
func (s *Set) Corruptions() <-chan Corruption { return s.reports }

// Concerns reports whether the block that c is about is still in use. It is not
// if it has been replaced since, alone or with its version: a version can be
// deleted and loaded again under its name while a report waits.
func (s *Set) Concerns(c Corruption) bool {
	return c.version != nil && s.Version(c.Version) == c.version && c.version.blocks[c.Partition].Load() == c.slot
}

// Prepare puts a version into the set: it can be acquired by name. If there is
// one of this name already, v takes its place, also as the current one, and it
// is returned to be closed.
func (s *Set) Prepare(v *Version) (replaced *Version) {
	named := maps.Clone(*s.named.Load())
	replaced = named[v.info.Name]
	v.reports = s.reports
	named[v.info.Name] = v
	s.named.Store(&named)
	if replaced != nil {
		s.current.CompareAndSwap(replaced, v)
	}
	return replaced
}

// Activate makes a version of the set the current one. Going back is an error.
func (s *Set) Activate(name string) error {
	v := s.Version(name)
	if v == nil {
		return fmt.Errorf("version %s of %s cannot become active: it is not in the set", name, s.db)
	}
	if current := s.Current(); name < current {
		return fmt.Errorf("version %s of %s cannot become active after %s", name, s.db, current)
	}
	s.current.Store(v)
	return nil
}

// Retire starts the clock of Version.Idle. The version can be acquired by name
// as before.
func (s *Set) Retire(name string) {
	if v := s.Version(name); v != nil {
		v.retire()
	}
}

// Remove takes a version out of the set, so that nobody finds it any more, and
// returns it to be closed, not before: Acquire relies on that. It returns nil if
// the version is not in the set. If it was the current one there is none then.
func (s *Set) Remove(name string) *Version {
	v := s.Version(name)
	if v == nil {
		return nil
	}
	named := maps.Clone(*s.named.Load())
	delete(named, name)
	s.named.Store(&named)
	s.current.CompareAndSwap(v, nil)
	return v
}
