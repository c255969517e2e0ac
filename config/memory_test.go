package config

import "testing"

// A small machine answers fewer ordered reads at a time, and a large one does not answer any number.
func TestScansFollowTheMemory(t *testing.T) {
	for machine, want := range map[Size]int{0: 16, 256 << 20: 4, 1 << 30: 4, 4 << 30: 16, 16 << 30: 64, 1 << 40: 64} {
		if got := scansIn(machine); got != want {
			t.Errorf("%s: %d, want %d", machine, got, want)
		}
	}
}
