package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	before, err := os.Stat(note)
	expect.NoError(t, err)
	n = g.run() // which remembers its source
	n.eventually("the same version is served", func() bool { return n.get("/fruit/plum").status == 200 })
	if count := g.log.count("the versions on disk are from another source", ""); count != 1 {
		t.Errorf("said %d times", count)
	}
	if after, err := os.Stat(note); err != nil || !os.SameFile(before, after) {
		t.Errorf("what it knows is written again: %v", err)
	}
}

// The same files elsewhere are no reason to load anything.
func TestSameFilesElsewhere(t *testing.T) {
	f := filled(t)
	g := f.movedTo(t)
	expect.NoError(t, os.CopyFS(filepath.Join(g.root, "fruit"), os.DirFS(filepath.Join(f.root, "fruit"))))
	dir := filepath.Join("fruit", "1")
	entries, err := os.ReadDir(filepath.Join(f.root, dir))
	expect.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		expect.NoError(t, err)
		expect.NoError(t, os.Chtimes(filepath.Join(g.root, dir, e.Name()), info.ModTime(), info.ModTime()))
	}
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
