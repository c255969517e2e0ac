package transfer

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// The other side may be slower than the least rate for the patience, and stall for that long at any time: what came before at
// a high rate does not count.
func TestPulse(t *testing.T) {
	const second = time.Second
	type step struct {
		bytes int
		took  time.Duration
		fast  bool
	}
	tests := map[string][]step{
		"at once":                    {{1000, 0, true}},
		"the patience":               {{0, 10 * second, true}, {0, 1, false}},
		"at the least rate":          {{100, second, true}, {100, second, true}, {1000, 10 * second, true}, {0, 10 * second, true}},
		"half of it":                 {{500, 10 * second, true}, {250, 5 * second, true}, {250, 5 * second, true}, {1, second, false}},
		"a stall after a fast start": {{1 << 30, second, true}, {0, 11 * second, false}},
		"stalls between":             {{1 << 30, second, true}, {0, 9 * second, true}, {900, 0, true}, {0, 9 * second, true}, {0, 2 * second, false}},
	}
	for name, steps := range tests {
		p := (&Transfer{leastRate: 100, patience: 10 * second}).newPulse(rate.NewLimiter(rate.Inf, burst))
		for i, s := range steps {
			if fast := p.add(s.bytes, s.took); fast != s.fast {
				t.Errorf("%s, step %d: %v", name, i, fast)
			}
		}
	}
}
