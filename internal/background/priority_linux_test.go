package background

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A thread has what was asked for, and its neighbours do not.
func TestLowerPriority(t *testing.T) {
	of := func() *unix.SchedAttr {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
			return &unix.SchedAttr{}
		}
		return attr
	}
	before := of()
	low := make(chan *unix.SchedAttr)
	go func() {
		LowerPriority()
		low <- of()
	}()
	got := <-low
	if got.Nice != LowestPriority || got.Policy != before.Policy {
		t.Errorf("policy %d, nice %d", got.Policy, got.Nice)
	}
	// A kernel that knows no slices says 0.
	if before.Runtime != 0 && got.Runtime != uint64(slice) {
		t.Errorf("a slice of %d ns, the usual one is %d", got.Runtime, before.Runtime)
	}
	if after := of(); after.Nice != before.Nice && before.Nice != LowestPriority {
		t.Errorf("nice %d, %d before", after.Nice, before.Nice)
	}
}
