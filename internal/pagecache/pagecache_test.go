package pagecache

import (
	"os"
	"testing"

	"sequins/test/expect"
)

// A window calls the kernel once for each step, and only for what is new.
func TestSteps(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	expect.NoError(t, err)
	defer f.Close()
	w := Of(f, 0)
	if w.Begin(Step-1) || w.begun != 0 || !w.Begin(Step) || w.begun != Step || w.Begin(2*Step-1) {
		t.Errorf("%+v", w)
	}
	if w.Written(2*Step + 1); w.begun != 2*Step+1 || w.dropped != Step {
		t.Errorf("written: %+v", w)
	}
	if w.Finished(2*Step + 2); w.dropped != 2*Step {
		t.Errorf("finished: %+v", w)
	}
	w = Of(f, 5)
	if w.Read(Step + 4); w.dropped != 5 {
		t.Errorf("less than a step was dropped: %+v", w)
	}
	if w.Read(Step + 5); w.dropped != Step {
		t.Errorf("read: %+v", w)
	}
	none := Of(nil, 0)
	none.Written(3 * Step)
	none.Finished(3 * Step)
	if none.Read(3 * Step); none != (Window{}) {
		t.Errorf("without a descriptor: %+v", none)
	}
}
