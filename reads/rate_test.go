package reads_test

import (
	"testing"
	"time"

	"sequins/reads"
)

// The client of an answer that holds memory must receive 32 KiB per second, and 1 MiB if more than half of the memory is in
// use.
func TestWriteBy(t *testing.T) {
	set := held(t, "v1", map[string]string{"k": "v"}, make([][]string, 1), func(int) bool { return true })
	rd := reads.New(catalog{"db": set}, reads.Options{MaxBatchBytes: 1 << 20, HeldGrace: time.Hour})
	defer rd.Stop()
	slow, other, third := rd.NewRead(), rd.NewRead(), rd.NewRead()
	if by := slow.WriteBy(1 << 20); !by.IsZero() {
		t.Errorf("%v without reserved memory", by)
	}
	slow.Reserve(2 << 20)
	first := slow.WriteBy(0)
	if d := slow.WriteBy(64 << 10).Sub(first); d != 2*time.Second {
		t.Errorf("%v for 64 KiB, want 2s", d)
	}
	other.Reserve(2 << 20)
	third.Reserve(1 << 20)
	if d := slow.WriteBy(4<<20 - 64<<10).Sub(first); d != 4*time.Second {
		t.Errorf("%v for 4 MiB while there is little memory, want 4s", d)
	}
	for _, r := range []*reads.Read{&slow, &other, &third} {
		r.Release()
	}
}
