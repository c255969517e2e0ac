package node

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"sequins/node/upkeep"
	"sequins/source"
	"sequins/store"
)

// TestLateMarker: a version was taken while its job paused, and the job has left the marker later. The next version needs
// one, too.
func TestLateMarker(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Settle, o.RefreshPeriod = 3*time.Second, time.Minute; o.each(always) })
		time.Sleep(3 * time.Hour) // the comparisons of what is served are far apart now
		f.finish("fruit", "1")
		time.Sleep(5 * time.Minute)
		f.remove("fruit", "1")
		f.unmarked("fruit", "2", "fig")
		time.Sleep(10 * time.Minute)
		n.expectCurrent(t, "fruit", "1") // version 2 is still being written
	})
}

// hangingMarker is a source in which the marker of version 1 cannot be read.
type hangingMarker struct {
	*testSource
	hangs *bool
}

func (s hangingMarker) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if *s.hangs && version == "1" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.testSource.Open(ctx, db, version, file, o)
}

// TestHangingMarker: a marker of the version that is served, which cannot be read, keeps nobody from newer versions.
func TestHangingMarker(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		run := func() *following {
			return f.follow(t, func(o *Options) {
				o.Source = hangingMarker{f.source, &hangs}
				o.Settle, o.RefreshPeriod = 3*time.Second, time.Minute
				o.each(always)
			})
		}
		n := run()
		time.Sleep(10 * time.Second)
		n.stop()
		f.state("fruit", func(s *store.State) { s.Marked = false })
		hangs = true
		f.put("fruit", "2", 1, fruit...)
		n = run()
		time.Sleep(5 * time.Minute)
		n.expectCurrent(t, "fruit", "2")
	})
}

// TestScrubOfManyDamagedBlocks: of more damaged blocks than can be reported at a time, a scrub reports all.
func TestScrubOfManyDamagedBlocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = 150
	f.put("fruit", "1", n, fruit...)
	r := f.run(func(o *Options) { o.ScrubPeriod = time.Hour })
	r.serves("fruit", "1")
	r.eventually("all are loaded", func() bool { return len(r.onNode("fruit", "1").Partitions) == n })
	for i := range n {
		f.rot(fmt.Sprintf("%05d.block", i))
	}
	f.source.down.Store(true)
	upkeep.Upkeep{Sets: r.follower.sets, ScrubPeriod: r.o.ScrubPeriod, Log: r.log}.Scrub(t.Context())
	r.eventually("all are known to be damaged", func() bool { return r.damaged("fruit") == n })
}
