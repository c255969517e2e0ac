package background

import (
	"runtime"
	"testing"
)

// The end of one is not that of another, and after the last all is as before.
func TestBegin(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	two, one := Begin(), Begin()
	for _, end := range []func(){one, two} {
		if n := runtime.GOMAXPROCS(0); n < 2*before+2 {
			t.Errorf("%d goroutines can run at a time, %d before", n, before)
		}
		if n := Processors(); n != before {
			t.Errorf("%d processors, not %d", n, before)
		}
		end()
	}
	if n := runtime.GOMAXPROCS(0); n != before || Processors() != before {
		t.Errorf("%d goroutines can run at a time, %d before", n, before)
	}
}
