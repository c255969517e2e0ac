package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version"
	"sequins/version/gate"
)

// What was held before a restart stays held, without being loaded again, whether it is still on the disk or was removed for a newer version that is
// held, too. The next version that is good is served.
func TestVerdictsAreKept(t *testing.T) {
	f, r := goodAndBad(t, ruled(gate.Rules{MaxShrink: 0.5}))
	f.put("fruit", "3", 2, numbered("k", 10)...)
	r.Refresh()
	r.held("3")
	r.eventually("2 is removed", func() bool { return f.onDisk("fruit") == "1 3" })
	r.stop()
	held := map[string]bool{}
	for _, v := range f.state("fruit", nil).Verdicts {
		held[v.Name] = v.State == store.Held
	}
	if !held["2"] || !held["3"] || held["1"] {
		t.Errorf("remembered are %v", held)
	}
	r = f.run(ruled(gate.Rules{MaxShrink: 0.5}))
	r.held("3")
	r.serves("fruit", "1")
	r.update("fruit", "4", 2, numbered("k", 100)...)
	for version, want := range map[string]int{"1": 1, "2": 1, "3": 1, "4": 1} {
		if n := f.log.count("load started", "version="+version+" "); n != want {
			t.Errorf("%d loads of version %s", n, version)
		}
	}
	if n := f.log.count("version held"); n != 2 {
		t.Errorf("%d lines say that versions are held", n)
	}
}

// The state of a database is lost: nothing is deleted, the node serves what has the greatest name on its disk, and goes on from there.
func TestStateLost(t *testing.T) {
	for name, lose := range map[string]func(f *fixture) error{
		"removed": func(f *fixture) error { return os.Remove(f.statePath("fruit")) },
		"empty":   func(f *fixture) error { return os.WriteFile(f.statePath("fruit"), nil, 0o644) },
		"cut":     func(f *fixture) error { return os.Truncate(f.statePath("fruit"), 60) },
		"anything": func(f *fixture) error {
			return os.WriteFile(f.statePath("fruit"), []byte(`{"format_version":1}`), 0o644)
		},
	} {
		for rulesName, rules := range map[string]gate.Rules{"": {}, " with rules": {MaxShrink: 0.5, MinRecords: 1}} {
			t.Run(name+rulesName, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				options := func(o *Options) {
					keeping(2)(o)
					ruled(rules)(o)
				}
				f.put("fruit", "1", 2, fruit...)
				r := f.run(options)
				r.serves("fruit", "1")
				r.update("fruit", "2", 2, fruit...)
				r.stop()
				expect.NoError(t, lose(f))
				f.source.down.Store(true)
				r = f.run(options)
				r.serves("fruit", "2")
				if disk := f.onDisk("fruit"); disk != "1 2" {
					t.Errorf("on the disk are %s", disk)
				}
				r.eventually("it is remembered again", func() bool {
					s, err := r.o.Store.State("fruit")
					return err == nil && s.Served.Name == "2" && s.Totals != nil
				})
				f.put("fruit", "3", 2, fruit...)
				f.source.down.Store(false)
				r.Refresh()
				r.serves("fruit", "3")
				r.stop()
				if n := f.log.count("load started"); n != 3 {
					t.Errorf("%d loads", n)
				}
			})
		}
	}
}

// A disk that does not give the state for a while: it is read again, and nothing of it is lost.
func TestStateUnreadable(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run(keeping(2))
	r.serves("fruit", "1")
	r.update("fruit", "2", 2, fruit...)
	r.stop()
	path := f.statePath("fruit")
	aside := filepath.Join(t.TempDir(), "STATE.json")
	expect.NoError(t, os.Rename(path, aside))
	expect.NoError(t, os.Symlink(path, path)) // which leads nowhere: an error that is not damage
	r = f.run(keeping(2))
	r.eventually("the log says so", func() bool { return f.log.count("the state of the database cannot be read, and is tried again") > 0 })
	expect.NoError(t, os.Rename(aside, path))
	r.serves("fruit", "2")
	r.stop()
	if former := f.state("fruit", nil).Former; len(former) != 1 || former[0].Name != "1" {
		t.Errorf("served before were %v", former)
	}
}

// The blocks with the greatest name are lost together with the state: a node does not go back, and loads them again.
func TestStateAndBlocksLost(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run(keeping(2))
	r.serves("fruit", "1")
	r.update("fruit", "2", 2, fruit...)
	r.stop()
	expect.NoError(t, os.Remove(f.statePath("fruit")))
	for _, block := range []string{"00000.block", "00001.block"} {
		expect.NoError(t, os.Remove(filepath.Join(f.dir("fruit", "2"), block)))
	}
	r = f.run(keeping(2))
	r.serves("fruit", "2")
	if n := f.log.count("version active", "version=1 "); n != 1 || f.onDisk("fruit") != "1 2" {
		t.Errorf("version 1 became active %d times, and on the disk are %s", n, f.onDisk("fruit"))
	}
}

// A restart does not try an input that has failed before its time. Other files of the version are tried at once.
func TestFailuresAreKept(t *testing.T) {
	for name, repair := range map[string]bool{"its time": false, "other files": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("fruit", "1", 1, fruit...)
			f.put("fruit", "2", 1, fruit...)
			f.damage("fruit", "2", "part-r-00000")
			synctest.Test(t, func(t *testing.T) {
				failures := func(n *following) float64 {
					failed, _ := n.counts(t, "sequins_load_failures_total", "fruit")
					return failed
				}
				n := f.follow(t, func(o *Options) {})
				time.Sleep(time.Second)
				if failed := failures(n); failed != 1 || n.current("fruit") != "1" {
					t.Fatalf("%v failed loads", failed)
				}
				n.stop()
				for range 3 {
					n = f.follow(t, func(o *Options) {})
					time.Sleep(5 * time.Minute)
					v := n.onNode("fruit", "2")
					if failed := failures(n); failed != 0 || v.State != "ERROR" || !strings.Contains(v.Error, "part-r-00000") ||
						!strings.HasPrefix(v.Detail, "it has failed 1 time") {
						t.Errorf("after a restart: %v failed loads, %+v", failed, v)
					}
					n.stop()
				}
				n = f.follow(t, func(o *Options) {})
				if repair {
					f.remove("fruit", "2")
					f.put("fruit", "2", 1, fruit...)
					n.Refresh()
					time.Sleep(10 * time.Second)
					n.expectCurrent(t, "fruit", "2")
					return
				}
				time.Sleep(faultyPause)
				if failed := failures(n); failed != 1 && failed != 2 { // a pause has half an hour at least
					t.Errorf("when its time has come: %v failed loads", failed)
				}
			})
		})
	}
}

// While the state cannot be written, a switch waits; what people decide and what frees the disk does not.
func TestFullDisk(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("fruit", "2", 1, fruit...)
	disk := &fullDisk{FS: fsys.OS}
	synctest.Test(t, func(t *testing.T) {
		f.pin("fruit", `version = "1"`)
		n := f.follow(t, func(o *Options) { o.Store, o.Reloadable = f.storeOn(disk), Reloadable{}; keeping(3)(o) })
		time.Sleep(time.Second)
		f.pin("fruit", "")
		n.Refresh()
		time.Sleep(time.Second)
		if n.current("fruit") != "2" || f.onDisk("fruit") != "1 2" {
			t.Fatalf("current is %q, on disk are %s", n.current("fruit"), f.onDisk("fruit"))
		}
		disk.full.Store(true)
		f.put("fruit", "3", 1, fruit...)
		n.Refresh()
		time.Sleep(time.Minute)
		if n.current("fruit") != "2" || !strings.Contains(n.onNode("fruit", "3").Error, "cannot be recorded") {
			t.Errorf("current is %q; of version 3: %+v", n.current("fruit"), n.onNode("fruit", "3"))
		}
		f.pin("fruit", `exclude = ["2", "3"]`)
		n.Refresh()
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "1") // 2 is excluded
		time.Sleep(10 * time.Minute)
		if got := f.onDisk("fruit"); got != "1" {
			t.Errorf("excluded are 2 and 3, and on disk are %s", got)
		}
		disk.full.Store(false)
		time.Sleep(maxBackoff + time.Second)
		if s := n.remembers(t, "fruit"); s.Served.Name != "1" || !strings.Contains(s.Pin, "exclude") {
			t.Errorf("remembered is %+v", s)
		}
	})
}

// TestAttemptsAreRemembered: a restart does not shorten the pauses after many failed attempts, and one that fails then is not repeated at once.
func TestAttemptsAreRemembered(t *testing.T) {
	d := newFixture(t).db("fruit", Reloadable{})
	defer d.bg.stop()
	in := content.Input{Name: "1", Hash: strings.Repeat("a", 16)}
	before := store.Failure{Input: in, Kind: "source", Reason: "x", Attempts: 9, Next: time.Now().Add(4 * time.Minute), By: d.memory.failsBy()}
	d.memory.state.Failures = []store.Failure{before}
	d.facts.Source, d.facts.Listed = version.Known, []content.Input{in}
	d.memory.failAgain()
	d.note()
	if f, due := d.memory.failure(in), d.records[in].retry; f.Attempts != 9 || time.Until(due) < 2*time.Minute {
		t.Errorf("it has failed %d times, and is tried again in %v", f.Attempts, time.Until(due))
	}
	if kind := d.memory.state.Failures[0].Kind; kind != "source" {
		t.Errorf("remembered is a failure of kind %q", kind)
	}
	served := content.Input{Name: "2", Hash: strings.Repeat("b", 16)} // which does not fail again without an attempt
	before.Input, before.Next = served, time.Now().Add(-time.Minute)
	d.memory.state.Failures = append(d.memory.state.Failures, before)
	d.facts.Add(served).Work = version.Loading
	d.note()
	d.records[served].err = errors.New("connection refused")
	d.facts.Loaded(served, failureOf(d.records[served].err), false)
	d.note()
	if due := d.records[served].retry; time.Until(due) < minBackoff/4 {
		t.Errorf("after an attempt of this process it is tried again in %v", time.Until(due))
	}
}

// TestFailureOfAnotherClock: a pause that was written while the clock was ahead keeps no version from being tried.
func TestFailureOfAnotherClock(t *testing.T) {
	d := newFixture(t).db("fruit", Reloadable{})
	defer d.bg.stop()
	in := content.Input{Name: "1", Hash: strings.Repeat("a", 16)}
	d.facts.Source, d.facts.Listed = version.Known, []content.Input{in}
	for kind, longest := range map[string]time.Duration{"source": maxBackoff, faulty: faultyPause} {
		d.memory.state.Failures = []store.Failure{{Input: in, Kind: kind, Reason: "x", Attempts: 1, Next: time.Now().Add(longest + time.Minute), By: d.memory.failsBy()}}
		d.memory.failAgain()
		if v, failed := d.facts.Entry(in); failed {
			t.Errorf("of kind %q: it is %+v", kind, v)
		}
	}
}
