package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/node/turns"
	"sequins/observe/status"
	"sequins/test/expect"
)

// window returns windows and a priority for Reloadable.Turn.
func window(t *testing.T, text string, priority int) turns.Terms {
	t.Helper()
	w, err := turns.ParseWindows(text)
	expect.NoError(t, err)
	return turns.Terms{Priority: priority, Windows: w}
}

// night starts a node, at midnight, that loads at night only.
func (f *fixture) night(t *testing.T, change ...func(*Options)) *following {
	terms := window(t, "22:00-06:00 UTC", 0)
	return f.follow(t, func(o *Options) {
		o.RefreshPeriod, o.Settle = time.Minute, 0
		o.each(func(d *DB) { d.Turn = terms })
		for _, c := range change {
			c(o)
		}
	})
}

// By day a new version waits, and the newest of several is loaded when the window begins.
func TestWindow(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.night(t)
		time.Sleep(12 * time.Hour) // until noon
		for i := 2; i <= 4; i++ {
			f.put("fruit", fmt.Sprint(i), 2, fruit...)
			time.Sleep(time.Hour)
		}
		const reason = "waits for the window that begins at 22:00 UTC"
		if v := n.onNode("fruit", "4"); v.State != status.Available || v.Detail != reason || v.Error != "" {
			t.Errorf("by day: %+v", v)
		}
		if f.log.count("load postponed", "version=4", reason) != 1 {
			t.Error("the log does not have the reason once")
		}
		if ready, why := n.Ready("fruit"); !ready {
			t.Errorf("not ready: %s", why)
		}
		f.put("nuts", "1", 1, fruit...)
		time.Sleep(2 * time.Minute)
		n.expectCurrent(t, "nuts", "1") // nothing of nuts was served
		time.Sleep(7*time.Hour - 3*time.Minute)
		n.expectCurrent(t, "fruit", "1") // before the window
		time.Sleep(2 * time.Minute)
		n.expectCurrent(t, "fruit", "4") // in the window
		if f.log.count("load started", "version=2")+f.log.count("load started", "version=3") > 0 {
			t.Error("a version that was replaced by a newer one while it waited was loaded")
		}
	})
}

// What people decide by day happens at once.
func TestWindowAndPins(t *testing.T) {
	for name, text := range map[string]string{"pinned": `version = "2"`, "approved": `approve = ["2"]`, "rolled back": `exclude = ["1"]`} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("fruit", "1", 2, fruit...)
			synctest.Test(t, func(t *testing.T) {
				n := f.night(t)
				time.Sleep(12 * time.Hour)
				f.put("fruit", "2", 2, fruit...)
				time.Sleep(time.Hour)
				n.expectCurrent(t, "fruit", "1") // by day
				f.pin("fruit", text)
				time.Sleep(2 * time.Minute)
				n.expectCurrent(t, "fruit", "2")
			})
		})
	}
}

// A node does not wait for its window when another one has begun to load the version, whatever part of it.
func TestWindowOfACluster(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{0}
		c.hold("1", 1)
		n := f.night(t, func(o *Options) { o.Cluster = c })
		time.Sleep(12 * time.Hour)
		f.put("fruit", "2", 2, fruit...)
		time.Sleep(time.Hour)
		if v := n.onNode("fruit", "2"); v.State != status.Available {
			t.Errorf("by day: %+v", v)
		}
		c.hold("2", 1)
		time.Sleep(10 * time.Second)
		n.expectCurrent(t, "fruit", "2") // another node holds a part of it
	})
}

// A restart by day loads what is missing of the version that is served, and goes on with the load that was interrupted.
func TestWindowAndRestart(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.night(t)
		time.Sleep(time.Hour)
		n.stop()
		time.Sleep(11 * time.Hour)
		expect.NoError(t, os.Remove(f.stored("00000.block")))
		f.put("fruit", "2", 2, fruit...)
		n = f.night(t)
		time.Sleep(time.Hour)
		if got := n.current("fruit"); got != "1" || len(n.onNode("fruit", "1").Partitions) != 2 {
			t.Errorf("current is %q: %+v", got, n.onNode("fruit", "1"))
		}
		if v := n.onNode("fruit", "2"); v.State != status.Available {
			t.Errorf("a version that was not begun: %+v", v)
		}
	})
}

// New settings take effect on loads that wait.
func TestWindowChanged(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.night(t)
		time.Sleep(12 * time.Hour)
		f.put("fruit", "2", 2, fruit...)
		time.Sleep(time.Hour)
		n.Apply(Reloadable{RefreshPeriod: time.Minute})
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "2")
	})
}

// Ten databases wait for one place and the same window: the greatest priority comes first, and an urgent one by day.
func TestPriority(t *testing.T) {
	f := newFixture(t)
	var want []string
	for i := range 10 {
		f.put(fmt.Sprintf("db%d", i), "1", 1, fruit...)
		want = append(want, fmt.Sprintf("db%d", (i*7+9)%10))
	}
	synctest.Test(t, func(t *testing.T) {
		terms := map[string]turns.Terms{"urgent": window(t, "", 0)}
		for i, db := range want {
			terms[db] = window(t, "22:00-06:00 UTC", -i)
		}
		n := f.night(t, func(o *Options) {
			o.MaxParallelLoads, o.RefreshPeriod = 1, 10*time.Minute
			o.DB = func(db string) DB { return DB{Turn: terms[db]} }
		})
		f.put("urgent", "1", 1, fruit...)
		time.Sleep(12 * time.Hour)
		for _, db := range append(slices.Sorted(slices.Values(want)), "urgent") {
			f.put(db, "2", 1, fruit...)
		}
		time.Sleep(time.Hour)
		if got := started(f, "2"); got != "urgent" {
			t.Errorf("by day %s are loaded", got)
		}
		time.Sleep(10 * time.Hour)
		if got, want := started(f, "2"), "urgent "+strings.Join(want, " "); got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
		for _, db := range want {
			n.expectCurrent(t, db, "2")
		}
	})
}

// started returns the databases of which a version was loaded, in the order in which the loads began.
func started(f *fixture, version string) string {
	var dbs []string
	for _, line := range f.log.with("load started", "version="+version+" ") {
		_, db, _ := strings.Cut(line, " db=")
		db, _, _ = strings.Cut(db, " ")
		dbs = append(dbs, db)
	}
	return strings.Join(dbs, " ")
}

// A version that has failed and of which nothing is here waits for the next window, as a failed one.
func TestWindowAfterAFailure(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.night(t, func(o *Options) {
			o.RefreshPeriod = time.Hour
			f.verbose(o)
		})
		f.put("fruit", "2", 2, fruit...)
		f.damage("fruit", "2", "part-r-00000")
		f.damage("fruit", "2", "part-r-00001")
		time.Sleep(5 * time.Hour)
		synctest.Wait() // for the refresh of the same moment
		if v := n.onNode("fruit", "2"); v.State != status.Error {
			t.Errorf("in the window: %+v", v)
		}
		time.Sleep(7 * time.Hour) // until noon
		synctest.Wait()
		tried := f.log.count("version failed", "version=2 ")
		v, db := n.onNode("fruit", "2"), n.Status().DBs["fruit"]
		if v.State != status.Error || v.Error == "" || v.Detail != "waits for the window that begins at 22:00 UTC" || !db.Failed("localhost") {
			t.Errorf("by day: %+v", v)
		}
		time.Sleep(9 * time.Hour)
		if again := f.log.count("version failed", "version=2 ") - tried; tried == 0 || again != 0 {
			t.Errorf("it was tried %d times by night and %d times by day", tried, again)
		}
	})
}
