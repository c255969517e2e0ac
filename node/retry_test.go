package node

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/content"
	"sequins/node/events"
	"sequins/observe/status"
	"sequins/store"
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
		n := f.follow(t, f.verbose)
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
		if s := n.Set([]byte("fruit")); s == nil || s.Current().Name != "1" {
			t.Error("the older version is not served meanwhile")
		}
		f.source.bad.Store(false)
		time.Sleep(maxBackoff + time.Minute)
		if s := n.Set([]byte("fruit")); s == nil || s.Current().Name != "2" {
			t.Error("it is not noticed that the source is right again")
		}
	})
}

// What is damaged itself is tried again once an hour, whatever the refresh period is, and is one event, one line of the log and
// one state; at once when its files change, or when the configuration is applied again.
func TestRetriesOfDamage(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.damage("fruit", "1", "part-r-00000")
	synctest.Test(t, func(t *testing.T) {
		recorder := events.New(events.Options{})
		defer recorder.Close()
		n := f.follow(t, func(o *Options) { o.RefreshPeriod, o.Events = 10*time.Second, recorder })
		tried := func(within time.Duration) int {
			before := f.log.count("load started")
			for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(time.Second) {
				if s := n.onNode("fruit", "1").State; within > time.Minute && s != status.Error {
					t.Fatalf("it is %s", s)
				}
			}
			return f.log.count("load started") - before
		}
		failed := func() (all int) {
			for _, e := range recorder.Last("") {
				if e.Kind == status.EventFailed {
					all++
				}
			}
			return all
		}
		if got := tried(time.Minute); got != 0 || f.log.count("load started") != 1 {
			t.Errorf("after the first attempt it was tried %d times in a minute", got)
		}
		if got := tried(4 * time.Hour); got < 4 || got > 8 {
			t.Errorf("it was tried %d times in four hours", got)
		}
		if events, lines := failed(), f.log.count("version failed"); events != 1 || lines != 1 {
			t.Errorf("one fault is %d events and %d lines of the log", events, lines)
		}
		f.damage("fruit", "1", "part-r-00000")
		if got := tried(time.Minute); got < 1 || got > 2 { // it may have been due in this minute anyway
			t.Errorf("it was tried %d times after its files had changed", got)
		}
		if events := failed(); events != 2 {
			t.Errorf("%d events after its files have changed", events)
		}
		n.Refresh()
		if got := tried(time.Minute); got > 1 {
			t.Errorf("it was tried %d times after a refresh", got)
		}
		n.Apply(Reloadable{RefreshPeriod: 10 * time.Second})
		if got := tried(time.Minute); got < 1 || got > 2 {
			t.Errorf("it was tried %d times after a reload", got)
		}
	})
}

// TestLongAttemptsAreRetriedSeldom: the pauses grow although each attempt takes longer than they do. They begin anew
// when the version was well.
func TestLongAttemptsAreRetriedSeldom(t *testing.T) {
	d := newFixture(t).db("fruit", Reloadable{})
	defer d.bg.stop()
	one := content.Input{Name: "1", Hash: content.Sum("x")}
	failed := version.Entry{Input: one, Failure: version.Failure{Reason: "connection refused", Waits: true}}
	for _, test := range []struct {
		before version.Entry
		want   int
	}{
		{version.Entry{Input: one, Work: version.Loading, Failure: version.Failure{Reason: "connection refused"}}, 8},
		{version.Entry{Input: one, Complete: true}, 1},
	} {
		d.records[one] = &record{}
		d.memory.keepFailure(store.Failure{Input: one, Kind: "source", Attempts: 7, Next: time.Now().Add(-time.Hour)})
		d.lister.planRetry(test.before, failed)
		if got := d.memory.failure(one).Attempts; got != test.want {
			t.Errorf("after %+v it has failed %d times in a row, want %d", test.before, got, test.want)
		}
	}
}
