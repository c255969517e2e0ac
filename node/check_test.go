package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/sleep"
	"sequins/source"
	"sequins/test/expect"
)

// TestComparedAfterSwitch: files that arrive after a version was taken for complete are served all the same, without a refresh or another
// node, and until then the status says how the source differs.
func TestComparedAfterSwitch(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Settle, o.RefreshPeriod = 30*time.Second, 0 })
		time.Sleep(31 * time.Second)
		set := n.Set([]byte("fruit"))
		n.expectCurrent(t, "fruit", "1")
		before := set.Current()
		f.putFile("fruit/1/part-r-00001", "late", "quince")
		time.Sleep(30 * time.Second)
		onNode := n.Status().DBs["fruit"].Versions["1"].Nodes[n.o.Name]
		if !onNode.Diverged || !strings.Contains(onNode.Error, "part-r-00001 was added") {
			t.Errorf("before it is loaded again: %t, %q", onNode.Diverged, onNode.Error)
		}
		if problems := n.Status().Problems; len(problems) != 1 || !strings.Contains(problems[0], "part-r-00001 was added") {
			t.Errorf("problems: %q", problems)
		}
		time.Sleep(31 * time.Second)
		if now := set.Current(); now == before {
			t.Fatalf("after settle, current is %q", now)
		}
		if problems := n.Status().Problems; len(problems) != 0 {
			t.Errorf("when it is loaded: %q", problems)
		}
	})
}

// TestComparisonsGrowRare: a job that rewrites its files all the time does not make the node load all the time, and what does not change is
// looked at once a day in the end. A request to refresh is answered at once.
func TestComparisonsGrowRare(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Settle, o.RefreshPeriod = time.Second, 0 })
		time.Sleep(1500 * time.Millisecond)
		for i := range 12 * 60 {
			f.putFile("fruit/1/part-r-00000", strings.Repeat("x", i), fruit...)
			time.Sleep(time.Minute)
		}
		if loads := f.log.count("load started"); loads < 5 || loads > 25 {
			t.Errorf("%d loads in 12 hours", loads)
		}
		time.Sleep(48 * time.Hour)
		loads := f.log.count("load started")
		f.putFile("fruit/1/part-r-00000", "last", fruit...)
		time.Sleep(time.Hour)
		if now := f.log.count("load started"); now != loads {
			t.Errorf("%d loads in an hour", now-loads)
		}
		n.Refresh()
		time.Sleep(10 * time.Second)
		if now := f.log.count("load started"); now != loads+1 {
			t.Errorf("%d loads after a request", now-loads)
		}
	})
}

// TestTouchedFilesAreTheSame: times alone are no difference, and neither are hidden files.
func TestTouchedFilesAreTheSame(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.RefreshPeriod = time.Minute })
		time.Sleep(time.Second)
		expect.NoError(t, os.Chtimes(filepath.Join(f.root, "fruit/1/part-r-00000"), time.Time{}, time.Unix(1_700_000_000, 0)))
		expect.NoError(t, os.WriteFile(filepath.Join(f.root, "fruit/1/.notes"), []byte("x"), 0o644))
		time.Sleep(time.Hour)
		n.Refresh()
		time.Sleep(time.Minute)
		if loads, problems := f.log.count("load started"), n.Status().Problems; loads != 1 || len(problems) > 0 {
			t.Errorf("%d loads, problems %q", loads, problems)
		}
	})
}

// heavySource answers listings of versions late.
type heavySource struct {
	source.Source
	compare, inspect atomic.Int64 // of version 1, and of the others
	comparing        atomic.Bool
}

func (s *heavySource) Contents(ctx context.Context, db, v string) (source.Contents, error) {
	wait := time.Duration(s.inspect.Load())
	if v == "1" {
		wait = time.Duration(s.compare.Load())
		s.comparing.Store(wait > time.Second)
		defer s.comparing.Store(false)
	}
	if err := sleep.For(ctx, wait); err != nil {
		return source.Contents{}, err
	}
	return s.Source.Contents(ctx, db, v)
}

// TestListingDuringComparison: a listing that is due while what is served is compared with a slow source follows the comparison.
func TestListingDuringComparison(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		slow := &heavySource{Source: f.source}
		n := f.follow(t, func(o *Options) {
			f.verbose(o)
			o.Source, o.Settle, o.RefreshPeriod = slow, 30*time.Second, 0
		})
		time.Sleep(31 * time.Second)
		set := n.Set([]byte("fruit"))
		n.expectCurrent(t, "fruit", "1")
		slow.compare.Store(int64(8 * time.Second))
		slow.inspect.Store(int64(12 * time.Second))
		f.put("fruit", "2", 1, fruit...)
		n.Refresh()
		time.Sleep(20 * time.Second)
		f.putFile("fruit/2/part-r-00001", "2", "quince")
		time.Sleep(24 * time.Hour)
		n.expectCurrent(t, "fruit", "2") // after a day
		n.Refresh()
		time.Sleep(5 * time.Minute)
		t.Logf("after another refresh current is %q", set.Current().Name)
	})
}
