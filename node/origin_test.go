package node

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/gate"
	"sequins/test/expect"
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

const elsewhere = "was loaded from"

// A version of the same name from another source is loaded; until then the status says where the served one is from.
func TestAnotherSource(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.put("fruit", "1", 2, "plum", "sloe", "pear")
	g.source.gate.Store(true) // the new files cannot be read yet
	n := g.run()
	n.serves("fruit", "1")
	n.eventually("it says that it serves the former one", func() bool { return n.node("fruit", "1").Error != "" })
	if a := n.get("/fruit/fig"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	g.source.gate.Store(false)
	n.eventually("the source's version is served", func() bool { return n.get("/fruit/plum").status == 200 && n.get("/fruit/fig").status == 404 })
	n.eventually("nothing is wrong", func() bool { return n.node("fruit", "1").Error == "" })
	n.stop()

	note := filepath.Join(g.store, "data", "fruit", "_SOURCE")
	written := 0
	for range 5 { // it remembers its source, and when the former version is gone
		before, err := os.Stat(note)
		expect.NoError(t, err)
		n = g.run()
		n.eventually("the same version is served", func() bool { return n.get("/fruit/plum").status == 200 })
		n.stop()
		if after, err := os.Stat(note); err != nil || !os.SameFile(before, after) {
			written++
		}
	}
	if count := g.log.count("the versions on disk are from another source", ""); count != 1 || written > 2 {
		t.Errorf("said %d times, and written %d times", count, written)
	}
}

// A version that was loaded and not served is not taken for one of another source, whether or not the store has a record of its source.
func TestUnservedVersionOfTheFormerSource(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		f := newFixture(t)
		f.put("fruit", "1", 2, "fig")
		n := f.run(ruled(gate.Rules{MinRecords: 100}))
		n.eventually("it is held", func() bool { return n.node("fruit", "1").State == "HELD" })
		n.stop()
		if !recorded {
			expect.NoError(t, os.Remove(filepath.Join(f.store, "data", "fruit", "_SOURCE")))
		}
		g := f.movedTo(t)
		g.put("fruit", "1", 2, "plum")
		n = g.run()
		n.serves("fruit", "1")
		if fig, plum := n.get("/fruit/fig"), n.get("/fruit/plum"); fig.status != 404 || plum.status != 200 {
			t.Errorf("%+v, %+v", fig, plum)
		}
		n.stop()
	}
}

// The same files elsewhere are no reason to load anything.
func TestSameFilesElsewhere(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.copyOf(t, f, "fruit", "1")
	n := g.run()
	n.serves("fruit", "1")
	n.eventually("they are found to be the same", func() bool {
		return g.log.count("the version on disk is the one that the source has", "") == 1 && n.node("fruit", "1").Error == ""
	})
	if n := g.log.count("load started", ""); n > 0 {
		t.Errorf("%d loads", n)
	}
}

// What the source does not have is served, as ever, but not as if it were from there. A newer version ends that.
func TestVersionOfTheFormerSource(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.put("fruit", "0", 2, "plum")
	for range 2 { // a restart does not change it
		n := g.run()
		n.serves("fruit", "1")
		if text := n.node("fruit", "1").Error; !strings.Contains(text, elsewhere+" "+f.root) || !strings.Contains(text, g.root) {
			t.Errorf("the status says %q", text)
		}
		n.stop()
	}
	g.put("fruit", "2", 2, "plum")
	n := g.run()
	n.serves("fruit", "2")
	n.stop()
	n = g.run()
	n.serves("fruit", "2")
	if text := n.node("fruit", "2").Error; text != "" {
		t.Error(text)
	}
}

// copyOf copies a version of another source, with the times of its files.
func (f *fixture) copyOf(t *testing.T, other *fixture, db, version string) {
	t.Helper()
	from, to := filepath.Join(other.root, db, version), filepath.Join(f.root, db, version)
	expect.NoError(t, os.CopyFS(to, os.DirFS(from)))
	entries, err := os.ReadDir(from)
	expect.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		expect.NoError(t, err)
		expect.NoError(t, os.Chtimes(filepath.Join(to, e.Name()), info.ModTime(), info.ModTime()))
	}
}

// keptTwo is a fixture whose store has versions 1 and 2 of fruit, with a fig, of which the first is kept for a rollback.
func keptTwo(t *testing.T) *fixture {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	n := f.run(keeping(3))
	n.serves("fruit", "1")
	f.put("fruit", "2", 2, "fig")
	n.Refresh()
	n.serves("fruit", "2")
	n.stop()
	return f
}

// A rollback serves nothing of the former source, also if the version was kept, and after another restart.
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
			n.eventually("the source is known", func() bool {
				source, _, err := n.o.Store.Origin("fruit")
				return err == nil && source == n.o.SourceName
			})
			if test.restart {
				n.stop()
				n = g.run(keeping(3))
				n.serves("fruit", served)
			}
			g.pin("fruit", `version = "1"`)
			n.Refresh()
			n.eventually("the rollback", func() bool { return n.get("/fruit/plum").status == 200 && n.get("/fruit/plum").version == "1" })
			if a := n.get("/fruit/fig"); a.status != 404 {
				t.Errorf("%+v", a)
			}
			n.eventually("it is logged", func() bool { return g.log.count("version rolled back to", "") == 1 })
			n.stop()
		})
	}
}

// A version that was not served before the restart is not served before it is compared with the source.
func TestNewerVersionOfTheFormerSource(t *testing.T) {
	f := filled(t)
	f.put("fruit", "2", 2, "fig")
	n := f.run(ruled(gate.Rules{MinRecords: 100}))
	n.eventually("the second version is held", func() bool { return n.node("fruit", "2").State == "HELD" })
	n.stop()
	g := f.movedTo(t)
	g.copyOf(t, f, "fruit", "1")
	g.put("fruit", "2", 2, "plum")
	g.source.gate.Store(true) // the files cannot be read yet
	n = g.run()
	n.eventually("it is loaded", func() bool {
		return g.log.count("load started", "") > 0 || n.node("fruit", "2").State == "BUILDING" || n.node("fruit", "2").Detail != ""
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
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
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

// What the jobs of the former source marked says nothing of those of this one.
func TestMarkersOfTheFormerSource(t *testing.T) {
	auto := func(o *Options) { o.AutoSuccess = func(string) bool { return true } }
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	n := f.run(auto)
	n.serves("fruit", "1")
	n.stop()
	g := f.movedTo(t)
	for _, version := range []string{"1", "2"} {
		g.put("fruit", version, 2, "plum")
		expect.NoError(t, os.Remove(filepath.Join(g.root, "fruit", version, "_SUCCESS")))
	}
	n = g.run(auto)
	defer n.stop()
	n.serves("fruit", "2")
}

// A served version that the source has in another form, and not complete, is not loaded again and again.
func TestIncompleteVersionOfAnotherSource(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	g.put("fruit", "1", 2, "plum")
	marker := filepath.Join(g.root, "fruit", "1", "_SUCCESS")
	expect.NoError(t, os.Remove(marker))
	n := g.run(func(o *Options) { o.Load = requireSuccess })
	defer n.stop()
	for range 10 {
		n.Refresh()
		looked := n.Status().RefreshedAt
		n.eventually("another look", func() bool { return !n.Status().RefreshedAt.Equal(looked) || n.get("/fruit/fig").status == 200 })
	}
	if count := g.log.count("version is not complete after all", ""); count > 0 {
		t.Errorf("%d loads", count)
	}
	expect.NoError(t, os.WriteFile(marker, nil, 0o644))
	n.Refresh()
	n.eventually("it is loaded", func() bool { return n.get("/fruit/plum").status == 200 })
}
