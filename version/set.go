package version

import (
	"fmt"
	"maps"
	"sync/atomic"
)

// Set holds the readable versions of one database. Acquire and AcquireVersion may
// be called by any goroutine and never block; the other methods belong to the
// goroutine that owns the database.
type Set struct {
	db      string
	current atomic.Pointer[Version]
	named   atomic.Pointer[map[string]*Version] // read-only, replaced as a whole
	reports chan Corruption
}

// Corruption reports a block that was found damaged while it was read.
type Corruption struct {
	Version   string
	Partition int
	Err       error

	version *Version
	slot    *slot
}

// maxReports is the capacity of Corruptions. Reports beyond it are repeated when
// the block is read again.
const maxReports = 64

// NewSet returns an empty set.
func NewSet(db string) *Set {
	s := &Set{db: db, reports: make(chan Corruption, maxReports)}
	s.named.Store(&map[string]*Version{})
	return s
}

// DB returns the name of the database.
func (s *Set) DB() string { return s.db }

// Acquire returns a handle on the current version, or nil.
func (s *Set) Acquire() *Handle {
	for {
		v := s.current.Load()
		if v == nil {
			return nil
		}
		if v.acquire() {
			return (*Handle)(v)
		}
		// It was replaced and closed after the Load; there is another one now.
	}
}

// AcquireVersion returns a handle on a version by name, whether prepared, current
// or retired, or nil. Of several revisions it is the current one, or else the
// newest, of those that have the plan; an empty plan is that of all, and a version
// whose plan is not known has any. It restarts the idle time of a retired version.
func (s *Set) AcquireVersion(name, plan string) *Handle {
	v, current := (*Version)(nil), s.current.Load()
	for id, each := range *s.named.Load() {
		if each.name == name && same(each.info.Plan, plan) && (v == nil || each == current || v != current && id > v.info.Name) {
			v = each
		}
	}
	if v == nil || !v.acquire() {
		return nil
	}
	if v.retired.Load() != 0 {
		v.used.Store(v.age())
	}
	return (*Handle)(v)
}

// AcquireServed returns a handle on the current version, or on one that it has replaced and that can still be read,
// by name, or nil. Of several revisions it is the newest that is not newer than the current version. Unlike
// AcquireVersion it does not delay the removal of a replaced version, as any client can ask for one, and a version that is
// withheld cannot be acquired.
func (s *Set) AcquireServed(name string) *Handle {
	current := s.current.Load()
	if current == nil {
		return nil
	}
	v := current
	if v.name != name {
		v = nil
		for id, each := range *s.named.Load() {
			if each.name == name && id <= current.info.Name && each.mayBeNamed() && (v == nil || id > v.info.Name) {
				v = each
			}
		}
	}
	if v == nil || !v.acquire() {
		return nil
	}
	return (*Handle)(v)
}

// same reports whether two plans are equal or one is unknown.
func same(a, b string) bool { return a == "" || b == "" || a == b }

// Readable reports whether the version with a Handle.ID is in the set.
func (s *Set) Readable(id uint64) bool {
	for _, v := range *s.named.Load() {
		if v.id == id {
			return true
		}
	}
	return false
}

// Version returns a version by its id, or nil.
func (s *Set) Version(name string) *Version { return (*s.named.Load())[name] }

// Current returns the id of the current version, or "".
func (s *Set) Current() string {
	if v := s.current.Load(); v != nil {
		return v.info.Name
	}
	return ""
}

// Corruptions receives each damaged block once until it is replaced.
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
		if s.current.Load() == replaced {
			v.wasCurrent.Store(true)
			s.current.Store(v)
		}
	}
	return replaced
}

// Activate makes a version of the set the current one. An older version than the
// current one is an error: see GoBack.
func (s *Set) Activate(name string) error { return s.activate(name, false) }

// GoBack is Activate for a version that may be older than the current one, which
// the pin does not allow.
func (s *Set) GoBack(name string) error { return s.activate(name, true) }

func (s *Set) activate(name string, back bool) error {
	v := s.Version(name)
	if v == nil {
		return fmt.Errorf("version %s of %s cannot become active: it is not in the set", name, s.db)
	}
	if current := s.Current(); name < current && !back {
		return fmt.Errorf("version %s of %s cannot become active after %s", name, s.db, current)
	}
	v.wasCurrent.Store(true)
	s.current.Store(v)
	return nil
}

// Retire starts the time of Version.Idle. The version can still be acquired by
// name.
func (s *Set) Retire(name string) {
	if v := s.Version(name); v != nil {
		v.retire()
	}
}

// Revive takes Retire back.
func (s *Set) Revive(name string) {
	if v := s.Version(name); v != nil {
		v.retired.Store(0)
	}
}

// Remove removes a version from the set and returns it, or nil. The caller must
// close it, and not earlier: Acquire relies on that. If it was the current
// version, there is none afterwards.
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
