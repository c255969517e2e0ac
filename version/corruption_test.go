package version

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/blocks"
	"sequins/test/expect"
)

func TestCorruptionIsReportedOnce(t *testing.T) {
	s, all := ready(t, "1", 2)
	h := s.Acquire()
	defer h.Release()
	all[0].err = errors.New("some error")
	h.Get(0, nil, nil)
	h.Report(0, all[0], all[0].err)
	h.Report(7, all[0], blocks.ErrCorrupt)
	all[0].err = fmt.Errorf("page 4: %w", blocks.ErrCorrupt)
	for range 3 {
		if _, _, err := h.Get(0, nil, nil); err != all[0].err {
			t.Fatalf("Get = %v", err)
		}
	}
	h.Report(1, all[1], syscall.EIO)
	var got []string
	for len(s.Corruptions()) > 0 {
		c := <-s.Corruptions()
		got = append(got, fmt.Sprintf("%s/%d %v", c.Input.Name, c.Partition, c.Err))
	}
	want := []string{"1/0 " + all[0].err.Error(), "1/1 input/output error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports:\n%s", diff)
	}
	expect.NoError(t, s.Version(in("1")).Put(0, all[0])) // as damaged as before
	h.Get(0, nil, nil)
	if len(s.Corruptions()) != 1 {
		t.Error("a block that replaced another is not reported")
	}
}

func TestReportsOfWhatWasReplaced(t *testing.T) {
	s, all := ready(t, "1", 2)
	report := func(p int) Corruption {
		h := s.Acquire()
		defer h.Release()
		h.Report(p, all[p], blocks.ErrCorrupt)
		return <-s.Corruptions()
	}
	first, second := report(0), report(1)
	if !s.Concerns(first) || !s.Concerns(second) || s.Concerns(Corruption{Input: in("1")}) {
		t.Error("a report of a block in use is not of one")
	}
	expect.NoError(t, s.Version(in("1")).Put(0, &fakeBlock{}))
	if s.Concerns(first) || !s.Concerns(second) {
		t.Error("one block was replaced, and not the other")
	}
	old := s.Prepare(newVersion("1", 2))
	if s.Concerns(second) {
		t.Error("a report of a version is taken for one of its successor")
	}
	expect.NoError(t, s.Remove(in("1")).Close(t.Context()))
	if s.Concerns(second) {
		t.Error("a report of a version that was removed")
	}
	expect.NoError(t, old.Close(t.Context()))
}

// TestReportOfAReplacedBlock: who still reads a block after it was replaced says nothing about its successor.
func TestReportOfAReplacedBlock(t *testing.T) {
	s, all := ready(t, "1", 1)
	h := s.Acquire()
	fresh := &fakeBlock{}
	expect.NoError(t, s.Version(in("1")).Put(0, fresh))
	h.Report(0, all[0], blocks.ErrCorrupt)
	if n := len(s.Corruptions()); n != 0 {
		t.Errorf("%d reports of a block that was replaced", n)
	}
	h.Report(0, fresh, blocks.ErrCorrupt)
	if n := len(s.Corruptions()); n != 1 {
		t.Errorf("%d reports of the block that has replaced it", n)
	}
	h.Release()
	expect.NoError(t, s.Remove(in("1")).Close(t.Context()))
}

func TestReportsNeverBlock(t *testing.T) {
	s, all := ready(t, "1", maxReports+1)
	h := s.Acquire()
	defer h.Release()
	for p, b := range all {
		b.err = blocks.ErrCorrupt
		h.Get(p, nil, nil)
	}
	<-s.Corruptions()
	for range 2 {
		h.Get(maxReports, nil, nil) // the report was dropped the first time
	}
	seen := 0
	for len(s.Corruptions()) > 0 {
		<-s.Corruptions()
		seen++
	}
	if seen != maxReports {
		t.Errorf("%d more reports, want %d", seen, maxReports)
	}
}
