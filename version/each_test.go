package version

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sequins/test/expect"
)

func TestEachBlock(t *testing.T) {
	s := NewSet("db")
	for _, name := range []string{"1", "2"} {
		v := newVersion(name, 3)
		for _, p := range []int{0, 2} {
			expect.NoError(t, v.Put(p, &fakeBlock{name: name}))
		}
		s.Prepare(v)
	}
	s.Version(in("2")).SetDamaged(2)
	seen := map[string]int{}
	err := s.EachBlock(func(h *Handle, p int, b Block) error {
		if b.(*fakeBlock).name != h.Name || h.Leaving() {
			t.Errorf("partition %d of %s: %+v", p, h.Name, b)
		}
		seen[h.Name] += 1 << p
		return nil
	})
	if err != nil || seen["1"] != 0b101 || seen["2"] != 0b001 {
		t.Errorf("walked over %v, %v", seen, err)
	}
	stop := errors.New("stop")
	calls := 0
	if err := s.EachBlock(func(*Handle, int, Block) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestLeaving closes a version during a walk: Leaving becomes true, and the version is closed as soon as the walk ends.
func TestLeaving(t *testing.T) {
	s := NewSet("db")
	v := newVersion("1", 2)
	for p := range 2 {
		expect.NoError(t, v.Put(p, &fakeBlock{}))
	}
	s.Prepare(v)
	closed := make(chan error, 1)
	calls := 0
	err := s.EachBlock(func(h *Handle, _ int, _ Block) error {
		calls++
		s.Remove(in("1"))
		go func() { closed <- v.Close(context.Background()) }()
		for !h.Leaving() {
			continue
		}
		return nil
	})
	if err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A block that is read while its version is renewed is read again.
func TestEachBlockOfRenewed(t *testing.T) {
	s, _ := ready(t, "1", 3)
	v := s.Version(in("1"))
	var calls []int
	err := s.EachBlock(func(_ *Handle, p int, _ Block) error {
		if calls = append(calls, p); len(calls) == 1 {
			v.Drop(2)
			s.Prepare(v.Renew())
		}
		return nil
	})
	if err != nil || !slices.Equal(calls, []int{0, 0, 1}) {
		t.Errorf("walked over %v, %v", calls, err)
	}
	expect.NoError(t, v.Close(t.Context()))
}
