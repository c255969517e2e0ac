package node

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
	"sequins/version/gate"
)

// movedTo returns a fixture of another source, with the store of f.
func (f *fixture) movedTo(t *testing.T) *fixture {
	g := newFixture(t)
	g.store = f.store
	return g
}

// filled is a fixture whose store has version 1 of fruit, with a fig.
func filled(t *testing.T) *fixture {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	n := f.run()
	n.serves("fruit", "1")
	n.stop()
	return f
}

// Other files of the same name in another source are loaded, and take the place of what is served; until then the status says so. A restart changes nothing.
func TestAnotherSource(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.put("fruit", "1", 2, "plum", "sloe", "pear")
	g.source.gate.Store(true) // the new files cannot be read yet
	n := g.run()
	n.serves("fruit", "1")
	n.eventually("it says that it serves the former one", func() bool { return n.onNode("fruit", "1").Error != "" })
	if a := n.get("/fruit/fig"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	g.source.gate.Store(false)
	n.eventually("the source's version is served", func() bool { return n.get("/fruit/plum").status == 200 && n.get("/fruit/fig").status == 404 })
	n.eventually("nothing is wrong", func() bool { return n.onNode("fruit", "1").Error == "" })
	n.eventually("the former one is removed", func() bool { return g.onDisk("fruit") == "1" })
	n.stop()

	before, err := os.Stat(g.statePath("fruit"))
	expect.NoError(t, err)
	for range 5 {
		n = g.run()
		n.eventually("the same version is served", func() bool { return n.get("/fruit/plum").status == 200 })
		n.stop()
	}
	if after, err := os.Stat(g.statePath("fruit")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the state has been written again: %v", err)
	}
	if loads := g.log.count("load started"); loads != 1 {
		t.Errorf("%d loads", loads)
	}
}

// A version that was loaded and not served is not taken for that of another source.
func TestUnservedVersionOfTheFormerSource(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	n := f.run(ruled(gate.Rules{MinRecords: 100}))
	n.eventually("it is held", func() bool { return n.onNode("fruit", "1").State == "HELD" })
	n.stop()
	g := f.movedTo(t)
	g.put("fruit", "1", 2, "plum")
	n = g.run()
	n.serves("fruit", "1")
	if fig, plum := n.get("/fruit/fig"), n.get("/fruit/plum"); fig.status != 404 || plum.status != 200 {
		t.Errorf("%+v, %+v", fig, plum)
	}
	n.stop()
}

// The same files elsewhere, with other times, are the same version: nothing is loaded.
func TestSameFilesElsewhere(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.copyOf(t, f, "fruit", "1")
	synctest.Test(t, func(t *testing.T) {
		n := g.follow(t, func(o *Options) { o.RefreshPeriod = time.Minute })
		time.Sleep(time.Hour)
		n.Refresh()
		time.Sleep(time.Minute)
		if loads, problems := g.log.count("load started"), n.Status().Problems; n.current("fruit") != "1" || loads > 0 || len(problems) > 0 {
			t.Errorf("%d loads, problems %q", loads, problems)
		}
	})
}

// What the source does not have is served, and said not to be in it. A newer version ends that.
func TestVersionOfTheFormerSource(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.put("fruit", "0", 2, "plum")
	for range 2 { // a restart does not change it
		n := g.run()
		n.serves("fruit", "1")
		n.eventually("it is said", func() bool {
			return strings.Contains(strings.Join(n.Status().Warnings, "\n"), "version 1 of fruit is not in the source any more")
		})
		n.stop()
	}
	g.put("fruit", "2", 2, "plum")
	n := g.run()
	n.serves("fruit", "2")
	n.eventually("all is well", func() bool { return len(n.Status().Warnings) == 0 })
	n.stop()
}

// copyOf copies a version of another source.
func (f *fixture) copyOf(t *testing.T, other *fixture, db, version string) {
	t.Helper()
	expect.NoError(t, os.CopyFS(filepath.Join(f.root, db, version), os.DirFS(filepath.Join(other.root, db, version))))
}

// keptTwo is a fixture whose store has versions 1 and 2 of fruit, with a fig, of which the first is kept for a rollback.
func keptTwo(t *testing.T) *fixture {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	n := f.run(keeping(3))
	n.serves("fruit", "1")
	n.update("fruit", "2", 2, "fig")
	n.stop()
	return f
}

// A rollback serves what the source lists, also if other files of the version were kept, and after another restart.
func TestRollbackAfterAnotherSource(t *testing.T) {
	for name, test := range map[string]struct {
		same    bool // version 2 is the same in both sources
		restart bool
	}{"newer version": {}, "same version": {same: true}, "restart": {restart: true}, "same version and restart": {same: true, restart: true}} {
		t.Run(name, func(t *testing.T) {
			f := keptTwo(t)
			g, served := f.movedTo(t), "3"
			g.put("fruit", "1", 2, "plum")
			if test.same {
				g.copyOf(t, f, "fruit", "2")
				served = "2"
			} else {
				g.put("fruit", "2", 2, "plum")
				g.put("fruit", "3", 2, "plum")
			}
			n := g.run(keeping(3))
			n.serves("fruit", served)
			if test.restart {
				n.stop()
				n = g.run(keeping(3))
				n.serves("fruit", served)
			}
			g.pin("fruit", `version = "1"`)
			n.Refresh()
			n.eventually("the rollback", func() bool {
				if a := n.get("/fruit/fig"); a.version == "1" && a.status == 200 {
					t.Fatalf("it serves what the former source had: %+v", a)
				}
				a := n.get("/fruit/plum")
				return a.status == 200 && a.version == "1"
			})
			n.eventually("it is logged", func() bool { return g.log.count("version rolled back to", "") == 1 })
		})
	}
}

// A rollback to a kept version that the source lacks serves what was kept.
func TestRollbackToWhatTheSourceLacks(t *testing.T) {
	f := keptTwo(t)
	g := f.movedTo(t)
	g.copyOf(t, f, "fruit", "2")
	n := g.run(keeping(3))
	n.serves("fruit", "2")
	g.pin("fruit", `version = "1"`)
	n.Refresh()
	n.serves("fruit", "1")
	if a := n.get("/fruit/fig"); a.status != 200 || g.log.count("load started") > 0 {
		t.Errorf("%+v, %d loads", a, g.log.count("load started"))
	}
}

// A version that was not served before the restart is not served before it is compared with the source.
func TestNewerVersionOfTheFormerSource(t *testing.T) {
	f := filled(t)
	f.put("fruit", "2", 2, "fig")
	n := f.run(ruled(gate.Rules{MinRecords: 100}))
	n.eventually("the second version is held", func() bool { return n.onNode("fruit", "2").State == "HELD" })
	n.stop()
	g := f.movedTo(t)
	g.copyOf(t, f, "fruit", "1")
	g.put("fruit", "2", 2, "plum")
	g.source.gate.Store(true) // the files cannot be read yet
	n = g.run()
	n.eventually("it is loaded", func() bool {
		return g.log.count("load started", "") > 0 || n.onNode("fruit", "2").State == "BUILDING" || n.onNode("fruit", "2").Detail != ""
	})
	if a := n.get("/fruit/fig"); a.status != 200 || a.version != "1" {
		t.Errorf("%+v", a)
	}
	g.source.gate.Store(false)
	n.serves("fruit", "2")
	if fig, plum := n.get("/fruit/fig"), n.get("/fruit/plum"); fig.status != 404 || plum.status != 200 {
		t.Errorf("%+v, %+v", fig, plum)
	}
	n.stop()
}

// Random switches between two sources and stops at random moments: in the end the source that is configured is served.
func TestWalkOfSources(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			a := newFixture(t)
			sources, newest, at, trail := []*fixture{a, a.movedTo(t)}, 0, 0, ""
			publish := func() {
				newest++
				for i, f := range sources {
					f.put("fruit", fmt.Sprint(newest), 4, fmt.Sprint("only in ", i), "m", "n", "o", "p")
				}
			}
			publish()
			for range 3 + r.IntN(6) {
				at = (at + r.IntN(2)) % 2
				if r.IntN(3) == 0 {
					publish()
				}
				pause := time.Duration(r.IntN(30)) * time.Millisecond
				trail += fmt.Sprintf(" %d(version %d, %v)", at, newest, pause)
				n := sources[at].run()
				<-time.After(pause)
				n.stop()
			}
			n := sources[at].run()
			defer n.stop()
			n.eventually("the source is served after"+trail, func() bool {
				here, there := n.get(fmt.Sprintf("/fruit/only%%20in%%20%d", at)), n.get(fmt.Sprintf("/fruit/only%%20in%%20%d", 1-at))
				return here.status == 200 && here.version == fmt.Sprint(newest) && there.status == 404
			})
		})
	}
}

// A served version that the source has in another form, and not complete, is not loaded again and again.
func TestIncompleteVersionOfAnotherSource(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.put("fruit", "1", 2, "plum")
	marker := filepath.Join(g.root, "fruit", "1", "_SUCCESS")
	expect.NoError(t, os.Remove(marker))
	synctest.Test(t, func(t *testing.T) {
		n := g.follow(t, func(o *Options) { o.each(requireSuccess); o.RefreshPeriod = time.Minute })
		time.Sleep(time.Hour)
		served := n.Set([]byte("fruit")).Current()
		if loads := g.log.count("load started"); loads > 0 || served.Name != "1" || len(n.Status().Problems) != 1 {
			t.Errorf("%d loads, %+v is served, problems %q", loads, served, n.Status().Problems)
		}
		expect.NoError(t, os.WriteFile(marker, nil, 0o644))
		n.Refresh()
		time.Sleep(10 * time.Minute)
		if now := n.Set([]byte("fruit")).Current(); now == served || now.Name != "1" || len(n.Status().Problems) > 0 {
			t.Errorf("when it is complete, %+v is served, problems %q", now, n.Status().Problems)
		}
	})
}
