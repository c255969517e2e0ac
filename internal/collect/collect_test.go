package collect

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// percent returns what debug.SetGCPercent has set.
func percent() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return int(int64(s[0].Value.Uint64()))
}

// Garbage is collected as before after resume, and after a first collection without it. What is set by hand to more stays.
func TestLater(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(150))
	resume := Later()
	if p := percent(); p != startPercent {
		t.Errorf("%d while blocks are opened", p)
	}
	resume()
	if p := percent(); p != 150 {
		t.Errorf("%d after it, want 150", p)
	}
	resume = Later()
	for deadline := time.Now().Add(10 * time.Second); percent() != 150; {
		if time.Now().After(deadline) {
			t.Fatalf("%d after a collection, want 150", percent())
		}
		runtime.GC()
	}
	debug.SetGCPercent(175)
	if resume(); percent() != 175 {
		t.Errorf("%d: resumed twice", percent())
	}
	debug.SetGCPercent(2 * startPercent)
	if Later()(); percent() != 2*startPercent {
		t.Errorf("%d: lowered", percent())
	}
}
