package node

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sequins/source"
)

// A flaky source can be listed, and the data of its newest version cannot be read until it is repaired.
type flaky struct {
	*testSource
	bad string

	mu   sync.Mutex
	at   []time.Time // when that was tried
	good bool
}

func (s *flaky) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.good && version == s.bad && file.Name != source.SuccessFile {
		s.at = append(s.at, time.Now())
		return nil, errDown
	}
	return s.testSource.Open(ctx, db, version, file, o)
}

func (s *flaky) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *flaky) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good = true
}

// A load that the source fails is tried again by itself, more and more seldom, although there is no refresh
// period; what is served stays meanwhile, and the version is loaded once that goes.
func TestLoadsAreRetried(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("fruit", "2", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		src := &flaky{testSource: f.source, bad: "2"}
		n, stop := f.follow(func(o *Options) { o.Source = src })
		defer stop()
		time.Sleep(time.Hour)
		at := src.times()
		if len(at) < 15 || len(at) > 35 {
			t.Errorf("%d attempts in an hour: %v", len(at), at)
		}
		for i := 1; i < len(at); i++ {
			most := min(minBackoff<<(i-1), maxBackoff)
			if wait := at[i].Sub(at[i-1]); wait < most/2 || wait > most+time.Second {
				t.Errorf("attempt %d came after %v, want some of %v", i, wait, most)
			}
		}
		if s := n.Set([]byte("fruit")); s == nil || s.Current() != "1" {
			t.Error("the older version is not served meanwhile")
		}
		src.repair()
		time.Sleep(maxBackoff + time.Minute)
		if s := n.Set([]byte("fruit")); s == nil || s.Current() != "2" {
			t.Error("it is not noticed that the source is right again")
		}
	})
}

// What fails because it is damaged waits for the next refresh.
func TestDamageIsNotRetried(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.damage("fruit", "1", "part-r-00000")
	synctest.Test(t, func(t *testing.T) {
		n, stop := f.follow(func(*Options) {})
		defer stop()
		time.Sleep(time.Hour)
		if got := f.log.count("version failed"); got != 1 {
			t.Errorf("it was tried %d times", got)
		}
		n.Refresh()
		time.Sleep(time.Minute)
		if got := f.log.count("load started"); got != 2 {
			t.Errorf("it was tried %d times, once after a refresh", got)
		}
	})
}
