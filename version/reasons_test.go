package version

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReasons(t *testing.T) {
	s, _ := next(state{}, source("1"))
	for _, e := range []event{NotFound{in("1")}, LoadEnded{Input: in("1"), Err: "part-00000 is truncated"}, Retry{in("1")}} {
		s, _ = Next(s, e)
	}
	if v, found := s.Entry(in("1")); !found || s.Status(v) != Error || v.Work != Loading || v.Failure.Reason != "part-00000 is truncated" {
		t.Errorf("a retried version shows %+v; want it in ERROR with the reason of its last failure", v)
	}
	for _, e := range []event{Planned{in("1"), false}, here("1"), ok("1")} {
		s, _ = Next(s, e)
	}
	if v, _ := s.Entry(in("1")); v.Failure.Reason != "" {
		t.Errorf("a version that was repaired still says %q", v.Failure.Reason)
	}
	if _, found := s.Entry(in("2")); found {
		t.Error("Entry finds an unknown version")
	}
}

// TestCompleteVersionHasNoError: a load process can die after it has published the last block. The version is complete,
// so that no other load ends well and takes the error back.
func TestCompleteVersionHasNoError(t *testing.T) {
	for name, seen := range map[string]Seen{"active": here("1"), "prepared": waiting("1")} {
		s, _ := next(state{}, source("1"))
		died := LoadEnded{Input: in("1"), Err: "the load process has ended too early", Passing: true}
		for _, e := range []event{NotFound{in("1")}, Planned{in("1"), false}, nothing("1"), seen, died} {
			s, _ = Next(s, e)
		}
		if v, _ := s.Entry(in("1")); v.Failure.Reason == "" {
			t.Errorf("%s: the failure is not shown", name)
		}
		want := s.Entries[0]
		want.Failure = Failure{}
		s, actions := Next(s, Retry{in("1")})
		if v, _ := s.Entry(in("1")); cmp.Diff(want, v) != "" || len(actions) > 0 {
			t.Errorf("%s: after a retry it is %+v, and %v is to be done", name, v, actions)
		}
	}
}
