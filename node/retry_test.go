package node

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
	"sequins/version"
)

var logTime = regexp.MustCompile(`^time=(\S+)`)

// times returns when the lines were written that have all of the words.
func (l *lines) times(t *testing.T, words ...string) (at []time.Time) {
	t.Helper()
	for _, line := range l.with(words...) {
		when, err := time.Parse(time.RFC3339, logTime.FindStringSubmatch(line)[1])
		expect.NoError(t, err)
		at = append(at, when)
	}
	return at
}

// A load that the source fails is tried again by itself, more and more seldom, although there is no refresh
// period; what is served stays meanwhile, and the version is loaded once that goes.
func TestLoadsAreRetried(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("fruit", "2", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		f.source.bad.Store(true)
		n, stop := f.follow(func(*Options) {})
		defer stop()
		time.Sleep(time.Hour)
		at := f.log.times(t, "version failed", "version=2")
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
		f.source.bad.Store(false)
		time.Sleep(maxBackoff + time.Minute)
		if s := n.Set([]byte("fruit")); s == nil || s.Current() != "2" {
			t.Error("it is not noticed that the source is right again")
		}
	})
}

// What fails because it is damaged is tried again, too, but after pauses that
// grow up to an hour.
func TestRetriesOfDamage(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.damage("fruit", "1", "part-r-00000")
	synctest.Test(t, func(t *testing.T) {
		n, stop := f.follow(func(*Options) {})
		defer stop()
		time.Sleep(time.Hour)
		if got := f.log.count("version failed"); got < 10 || got > 14 {
			t.Errorf("it was tried %d times in the first hour", got)
		}
		before := f.log.count("load started")
		time.Sleep(24 * time.Hour)
		if got := f.log.count("load started") - before; got < 23 || got > 49 {
			t.Errorf("it was tried %d times in a day", got)
		}
		before = f.log.count("load started")
		n.Refresh()
		time.Sleep(time.Minute)
		if got := f.log.count("load started") - before; got < 1 || got > 2 { // it may have been due in this minute anyway
			t.Errorf("it was tried %d times after a refresh", got)
		}
	})
}

// TestLongAttemptsAreRetriedSeldom: the pauses grow although each attempt takes longer than they do. They begin anew
// when the version was well.
func TestLongAttemptsAreRetriedSeldom(t *testing.T) {
	d := newFixture(t).lister("fruit", Reloadable{})
	defer d.stop()
	failed := version.Entry{Name: "1", Status: version.Error, Reason: "connection refused", Failed: true}
	for _, test := range []struct {
		before version.Entry
		want   int
	}{
		{version.Entry{Name: "1", Status: version.Building, Reason: failed.Reason}, 8},
		{version.Entry{Name: "1", Status: version.Active}, 1},
	} {
		d.facts["1"] = &facts{retries: retries{failed: 7, last: time.Now().Add(-time.Hour)}}
		d.planRetry(test.before, failed)
		if got := d.facts["1"].retries.failed; got != test.want {
			t.Errorf("after %v it has failed %d times in a row, want %d", test.before.Status, got, test.want)
		}
	}
}
