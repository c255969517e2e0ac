package wire

import (
	"slices"
	"time"
)

// Times is how long answers took.
type Times struct {
	all    []time.Duration
	sorted bool
}

func (t *Times) add(d time.Duration) {
	t.all = append(t.all, d)
	t.sorted = false
}

func (t *Times) merge(o *Times) {
	t.all = append(t.all, o.all...)
	t.sorted = false
}

// Count is how many answers there were.
func (t *Times) Count() int { return len(t.all) }

// Quantile returns the time that a part q of the answers did not exceed, 0 without answers.
func (t *Times) Quantile(q float64) time.Duration {
	if len(t.all) == 0 {
		return 0
	}
	if !t.sorted {
		slices.Sort(t.all)
		t.sorted = true
	}
	return t.all[min(int(q*float64(len(t.all))), len(t.all)-1)]
}
