package blocks

import (
	"errors"
	"testing"
	"time"
)

// TestSweepPauses holds a sweep to a pause every few megabytes: requests wait that long for it. When a pause says
// so, it ends.
func TestSweepPauses(t *testing.T) {
	records := make([]record, 30_000)
	value := make([]byte, 1000)
	for i := range records {
		records[i] = record{benchKey(nil, i), value}
	}
	r := openFile(t, buildBlock(t, records, WriterOptions{}))
	var s Scratch
	for i, rec := range records {
		if _, ok, err := r.Get(rec.key, &s); !ok || err != nil {
			t.Fatal(i, ok, err)
		}
	}
	pauses, enough := 0, errors.New("enough")
	pause := func(time.Duration) error { pauses++; return nil }
	if err := r.Sweep(pause); err != nil || pauses < len(records)/5000 {
		t.Errorf("%d pauses in %d bytes, %v", pauses, r.Size(), err)
	}
	pauses = 0
	if err := r.Sweep(func(time.Duration) error { pauses++; return enough }); !errors.Is(err, enough) || pauses != 1 {
		t.Errorf("%d pauses, %v", pauses, err)
	}
}
