package version

import (
	"fmt"
	"maps"
	"sync/atomic"

	"sequins/internal/content"
)

// Set holds the readable versions of one database. DB, Acquire, AcquireVersion, AcquireServed, EachBlock, Current, Reached and Corruptions may be
// called by any goroutine and do not wait for each other; the other methods belong to the goroutine that owns the database.
type Set struct {
	db      string
	current atomic.Pointer[Version]
	named   atomic.Pointer[map[content.Input]*Version] // read-only, replaced as a whole
	reached atomic.Pointer[string]                     // see Reached
	reports chan Corruption
}

// maxReports is the capacity of Corruptions. Reports beyond it are repeated when the block is read again.
const maxReports = 64

// NewSet returns an empty set.
func NewSet(db string) *Set {
	s := &Set{db: db, reports: make(chan Corruption, maxReports)}
	s.reached.Store(new(string))
	s.named.Store(&map[content.Input]*Version{})
	return s
}

// DB returns the name of the database.
func (s *Set) DB() string { return s.db }

// acquire acquires the version that choose returns, nil if it returns nil.
func (s *Set) acquire(choose func(current *Version) *Version) *Version {
	for {
		v := choose(s.current.Load())
		if v == nil || v.acquire() {
			return v
		}
		// It was replaced and closed after it had been chosen; choose finds another one now, or none.
	}
}

// Acquire returns a handle on the current version, or nil.
func (s *Set) Acquire() *Handle {
	return (*Handle)(s.acquire(func(current *Version) *Version { return current }))
}

// AcquireVersion returns a handle on a version by name, whether prepared, current or retired, or nil. code is that of its content (see
// content.Content); "" is that of any: the current one, or else one that was current, or else one that is not retired: a content that has never been
// current need not be whole. It restarts the idle time of a retired version.
func (s *Set) AcquireVersion(name, code string) *Handle {
	v := s.acquire(func(current *Version) (best *Version) {
		for _, each := range *s.named.Load() {
			if each.Name == name && (code == "" || code == each.code) && (best == nil || each.rank(current) > best.rank(current)) {
				best = each
			}
		}
		return best
	})
	if v == nil {
		return nil
	}
	if retired := v.retired.Load(); retired != 0 {
		v.retired.CompareAndSwap(retired, v.age()) // it may have been revived
	}
	return (*Handle)(v)
}

// rank orders the contents of a version for a request by its name: see AcquireVersion.
func (v *Version) rank(current *Version) int {
	switch was, stays := v.wasCurrent.Load(), v.retired.Load() == 0; {
	case v == current:
		return 4
	case was && stays:
		return 3
	case was:
		return 2
	case stays:
		return 1
	}
	return 0
}

// AcquireServed returns a handle on the current version, or on one that it has replaced and that can still be read,
// by name, or nil. code is that of its content; "" is that of any. Unlike AcquireVersion it does not delay the removal of a replaced version, as any client
// can ask for one, and neither a version that is withheld nor a content that is to take the place of the current one can be acquired.
func (s *Set) AcquireServed(name, code string) *Handle {
	return (*Handle)(s.acquire(func(current *Version) (best *Version) {
		switch {
		case current == nil || name > current.Name:
			return nil
		case current.Name == name && (code == "" || current.code == code):
			return current
		}
		for _, each := range *s.named.Load() {
			may := each.wasCurrent.Load() || name != current.Name && !each.withheld.Load()
			if each.Name == name && (code == "" || each.code == code) && may && (best == nil || each.id > best.id) { // the one that was opened last
				best = each
			}
		}
		return best
	}))
}

// Version returns the version of an input, or nil.
func (s *Set) Version(in content.Input) *Version { return (*s.named.Load())[in] }

// Current returns the content of the current version; zero if there is none.
func (s *Set) Current() content.Content {
	if v := s.current.Load(); v != nil {
		return v.Content
	}
	return content.Content{}
}

// Corruptions receives each damaged block once until it is replaced.
func (s *Set) Corruptions() <-chan Corruption { return s.reports }

// Concerns reports whether the block that c is about is still in use. It is not if it has been replaced since, alone or with its version: a version
// can be deleted and loaded again under its name while a report waits.
func (s *Set) Concerns(c Corruption) bool {
	v := s.Version(c.Input)
	return v != nil && c.slot != nil && v.slot(c.Partition) == c.slot
}

// Prepare puts a version into the set: it can be acquired by name. If there is one of its input already, v takes its place, also as the current one,
// and it is returned to be closed.
func (s *Set) Prepare(v *Version) (replaced *Version) {
	named := maps.Clone(*s.named.Load())
	replaced = named[v.Input]
	v.reports = s.reports
	named[v.Input] = v
	s.named.Store(&named)
	if replaced != nil {
		if s.current.Load() == replaced {
			v.wasCurrent.Store(true)
			s.current.Store(v)
		}
	}
	return replaced
}

// Activate makes a version of the set the current one. One with a lesser name than the current one is an error: see GoBack.
func (s *Set) Activate(in content.Input) error {
	if current := s.Current(); in.Name < current.Name {
		return fmt.Errorf("version %s of %s cannot become active after %s", in.Name, s.db, current.Name)
	}
	return s.GoBack(in)
}

// GoBack is Activate for a version that may be older than the current one, which the pin does not allow.
func (s *Set) GoBack(in content.Input) error {
	v := s.Version(in)
	if v == nil {
		return fmt.Errorf("version %s of %s cannot become active: it is not in the set", in.Name, s.db)
	}
	v.wasCurrent.Store(true)
	s.current.Store(v)
	s.Reach(v.Name)
	return nil
}

// Reach records that a version of a name was the current one, maybe in an earlier process.
func (s *Set) Reach(name string) { s.reached.Store(new(max(name, s.Reached()))) }

// Reached returns the greatest name that a current version has had, "" if there was none: less than it are those after GoBack.
func (s *Set) Reached() string { return *s.reached.Load() }

// Remove removes a version from the set and returns it, or nil. The caller must close it, and not earlier: Acquire relies on that. If it was the
// current version, there is none afterwards.
func (s *Set) Remove(in content.Input) *Version {
	v := s.Version(in)
	if v == nil {
		return nil
	}
	named := maps.Clone(*s.named.Load())
	delete(named, in)
	s.named.Store(&named)
	s.current.CompareAndSwap(v, nil)
	return v
}

// EachBlock calls f for every readable block of every version in the set, and holds a reference to the block's version
// meanwhile. Unlike AcquireVersion it does not delay the removal of a retired version; an f that takes long must return
// when [Handle.Leaving] is true. EachBlock returns the first error.
func (s *Set) EachBlock(f func(h *Handle, partition int, b Block) error) error {
	for in, v := range *s.named.Load() {
		for p := range v.blocks {
			for renewed := true; renewed; { // also while f reads: then f may not have read all of the block
				v := s.Version(in)
				if err := v.withBlock(p, f); err != nil {
					return err
				}
				renewed = s.Version(in) != v
			}
		}
	}
	return nil
}

func (v *Version) withBlock(p int, f func(h *Handle, partition int, b Block) error) error {
	if v == nil || !v.acquire() {
		return nil
	}
	defer v.release()
	if s := v.slot(p); s != nil && !s.damaged.Load() {
		return f((*Handle)(v), p, s.Block)
	}
	return nil
}
