package load

import (
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"sequins/sequencefile"
	"sequins/shard"
)

// While a load goes on, more goroutines can run than load; afterwards, and
// whatever it ends with, no more than before.
func TestProcs(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	w := newWorld(t)
	w.write(cut(shard.Hadoop, 3, keys(100)...), sequencefile.WriterOptions{})
	var least, workers atomic.Int64
	src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
		return body{ReadCloser: f, read: func(p []byte) (int, error) {
			least.Store(int64(runtime.GOMAXPROCS(0)))
			workers.Store(int64(Options{}.workers()))
			return f.Read(p)
		}}
	}}
	l := New(src, w.store, nil, Options{})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	for _, damaged := range []bool{false, true} {
		if damaged {
			plan.Files[0].Size++ // it has changed since
			w.newStore()
			l = New(src, w.store, nil, Options{})
		}
		if err := l.Load(t.Context(), plan, all(plan), nil); (err != nil) != damaged {
			t.Fatal(err)
		}
		if least.Load() < 2*workers.Load()+2 || workers.Load() != int64(before) {
			t.Errorf("%d goroutines load, of %d that can run", workers.Load(), least.Load())
		}
		if after := runtime.GOMAXPROCS(0); after != before {
			t.Errorf("%d goroutines can run at a time, %d before", after, before)
		}
	}
}
