package loadproc

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// A load that lacked room is tried again when there is enough of it.
func TestShortage(t *testing.T) {
	free, known := int64(1000), true
	l := &Launcher{Free: func() (int64, bool) { return free, known }, running: map[*Process]bool{{left: 300}: true}}
	l.SetReserve(100)
	refused := l.Shortage(fmt.Errorf("loading: %w", &RoomError{Needs: 700}), 50)
	if l.IsOver(refused) {
		t.Error("of 1,000 bytes that are free, 400 are not for this load")
	}
	free = 1100
	if !l.IsOver(refused) {
		t.Error("700 bytes are free for it")
	}
	l.SetReserve(101)
	if l.IsOver(refused) {
		t.Error("699 bytes are free for it")
	}
	l.SetReserve(-1)
	if !l.IsOver(refused) {
		t.Error("the disk is not to be checked any more")
	}

	full := l.Shortage(syscall.ENOSPC, 5000)
	if free = 1599; l.IsOver(full) {
		t.Error("499 bytes more are too few of 5,000")
	}
	if free = 1600; !l.IsOver(full) {
		t.Error("500 bytes more")
	}
	if empty := l.Shortage(syscall.EDQUOT, 0); l.IsOver(empty) {
		t.Error("there is no more room than before")
	}
	if known = false; l.IsOver(full) || l.Shortage(syscall.ENOSPC, 1) != nil {
		t.Error("the disk is not known")
	}
	if l.Shortage(errors.New("damaged"), 1) != nil || l.Shortage(nil, 1) != nil || (&Launcher{}).Shortage(&RoomError{}, 1) != nil {
		t.Error("it was not room that was lacking")
	}
}
