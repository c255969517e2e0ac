package version

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sequins/test/expect"
)

// TestStress runs readers on a set whose versions are replaced, retired, removed
// and closed constantly, and their blocks, too. No reader may get a closed block, no version, or an
// older version than before.
func TestStress(t *testing.T) {
	const versions, readers = 3000, 4
	s, _ := ready(t, name(0), 2)
	ctx, stop := context.WithCancel(t.Context())
	var group, closing sync.WaitGroup
	for range readers {
		group.Go(func() { readOn(ctx, t, s) })
	}
	group.Go(func() { // a reader by name, also of removed versions
		for i := 0; ctx.Err() == nil; i++ {
			if h := s.AcquireVersion(name(i%versions), ""); h != nil {
				get(t, h)
				h.Release()
			}
		}
	})
	for i := 1; i <= versions; i++ {
		v := newVersion(name(i), 2)
		for p := range 2 {
			expect.NoError(t, v.Put(p, &fakeBlock{}))
		}
		s.Prepare(v)
		expect.NoError(t, s.Activate(in(name(i))))
		s.Version(in(name(i - 1))).Retire()
		old := s.Remove(in(name(i - 1)))
		closing.Go(func() {
			if err := old.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		if i%3 == 0 {
			expect.NoError(t, v.Put(1, &fakeBlock{}))
		}
		if renewed := v.Renew(); renewed != nil {
			old := s.Prepare(renewed)
			closing.Go(func() {
				if err := old.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	stop()
	group.Wait()
	closing.Wait()
	expect.NoError(t, s.Remove(in(name(versions))).Close(t.Context()))
}

func name(i int) string { return fmt.Sprintf("%06d", i) }

func readOn(ctx context.Context, t *testing.T, s *Set) {
	last := ""
	for ctx.Err() == nil {
		h := s.Acquire()
		if h == nil {
			t.Error("no version")
			return
		}
		if strings.Compare(h.Name, last) < 0 {
			t.Errorf("%s after %s", h.Name, last)
		}
		last = h.Name
		get(t, h)
		h.Release()
	}
}

func get(t *testing.T, h *Handle) {
	for p := range h.Partitions {
		if _, found, err := h.Get(p, nil, nil); !found || err != nil {
			t.Errorf("%s/%d: %v, %v", h.Name, p, found, err)
		}
	}
}
