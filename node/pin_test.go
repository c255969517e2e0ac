package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/observe/status"
	"sequins/test/expect"
)

// pin writes the file _PIN of a database; none if text is empty.
func (f *fixture) pin(db, text string) {
	f.t.Helper()
	path := filepath.Join(f.root, db, "_PIN")
	if text == "" {
		expect.NoError(f.t, os.Remove(path))
		return
	}
	expect.NoError(f.t, os.WriteFile(path, []byte(text), 0o644))
}

// TestRollback excludes the version that is served: the one before comes back, and a newer one goes live by itself.
func TestRollback(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("fruit", "2", 2, fruit...)
	r := f.run()
	r.serves("fruit", "2")
	f.pin("fruit", "exclude = [\"2\"]\nby = \"ana\"\nreasons = {2 = \"half\"}")
	r.Refresh()
	r.serves("fruit", "1")
	if p := r.Status().DBs["fruit"].Pin; p == nil || p.String() != "2 excluded: half (by ana)" {
		t.Errorf("the status says %v", p)
	}
	r.update("fruit", "3", 2, fruit...)
}

// TestPinned pins an older version: newer ones wait until it is taken back.
func TestPinned(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("fruit", "2", 2, fruit...)
	r := f.run()
	r.serves("fruit", "2")
	f.pin("fruit", `version = "1"`)
	r.Refresh()
	r.serves("fruit", "1")
	f.put("fruit", "3", 2, fruit...)
	r.Refresh()
	r.eventually("it is no version to be loaded", func() bool { return r.onNode("fruit", "3").State == "" })
	f.pin("fruit", "")
	r.Refresh()
	r.serves("fruit", "3")
}

// TestKeptVersion keeps two versions: the one before is served at once after a rollback, although the source does not
// have it any more, and over a restart.
func TestKeptVersion(t *testing.T) {
	f := newFixture(t)
	keep := func(o *Options) { o.each(func(d *DB) { d.KeepVersions = 2 }) }
	f.put("fruit", "1", 2, fruit...)
	r := f.run(keep)
	r.serves("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	f.remove("fruit", "1")
	r.Refresh()
	r.serves("fruit", "2")
	r.stop()

	r = f.run(keep)
	r.serves("fruit", "2")
	started := f.log.count("load started")
	f.pin("fruit", `exclude = ["2"]`)
	r.Refresh()
	r.serves("fruit", "1")
	if n := f.log.count("load started") - started; n > 0 {
		t.Errorf("%d loads for what was on the disk", n)
	}
}

// TestRollbackOverRestart: what has been excluded does not come back when the node restarts without the source.
func TestRollbackOverRestart(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("fruit", "2", 2, fruit...)
	r := f.run(func(o *Options) { o.each(func(d *DB) { d.KeepVersions = 3 }) })
	r.serves("fruit", "2")
	_, cursor, _ := strings.Cut(r.get("/fruit?limit=1").body, `"cursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	f.pin("fruit", `version = "1"`)
	r.Refresh()
	r.serves("fruit", "1")
	r.eventually("the version that the pin does not allow is kept", func() bool { return r.onNode("fruit", "2").State == status.Kept })
	r.stop()
	f.source.down.Store(true)
	r = f.run(func(o *Options) { o.each(func(d *DB) { d.KeepVersions = 3 }) })
	r.serves("fruit", "1")
	r.eventually("all that is on the disk is open", func() bool {
		n := r.onNode("fruit", "2")
		return n.State == status.Kept && n.Detail == "the pin does not allow it"
	})
	r.serves("fruit", "1")
	if answer := r.get("/fruit?after=" + cursor); answer.status != 410 {
		t.Errorf("a page after one of the version that was rolled back: %+v", answer)
	}
}

// A version that is lost while the node is down, and rolled back, is not one that the node is yet to switch to.
func TestRollbackOfLostVersion(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run(func(o *Options) { o.each(func(d *DB) { d.KeepVersions = 3 }) })
	r.serves("fruit", "1")
	r.update("fruit", "2", 2, fruit...)
	_, cursor, _ := strings.Cut(r.get("/fruit?limit=1").body, `"cursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	r.stop()
	f.pin("fruit", `version = "1"`)
	expect.NoError(t, os.RemoveAll(filepath.Join(f.store, "data/fruit/2")))
	r = f.run(func(o *Options) { o.each(func(d *DB) { d.KeepVersions = 3 }) })
	r.serves("fruit", "1")
	if answer := r.get("/fruit?after=" + cursor); answer.status != 410 {
		t.Errorf("a page after one of the version that was rolled back: %+v", answer)
	}
}

// TestUnreadablePin: a pin that cannot be understood changes nothing, and each fault of it is reported once.
func TestUnreadablePin(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("fruit", "2", 2, fruit...)
	f.pin("fruit", `version = "1"`)
	r := f.run()
	r.serves("fruit", "1")
	for text, fault := range map[string]string{`version = "1`: "unterminated", `versions = "1"`: "unknown key versions"} {
		f.pin("fruit", text)
		r.Refresh()
		r.eventually("it is reported", func() bool {
			all := strings.Join(r.Status().Warnings, "\n")
			return strings.Contains(all, "_PIN of fruit cannot be read") && strings.Contains(all, fault)
		})
	}
	r.serves("fruit", "1")
	if n := f.log.count("cannot be read"); n != 2 {
		t.Errorf("two faults are in the log %d times", n)
	}
}

// TestPinOfEmptyDirectory: a directory without versions, as of a mount that is missing, takes no decision back.
func TestPinOfEmptyDirectory(t *testing.T) {
	f := newFixture(t)
	f.put("other", "1", 1, "fig")
	f.put("fruit", "1", 2, fruit...)
	r := f.run(keeping(3))
	r.serves("fruit", "1")
	r.update("fruit", "2", 2, fruit...)
	f.pin("fruit", `version = "1"`)
	r.Refresh()
	r.serves("fruit", "1")
	dir, away := filepath.Join(f.root, "fruit"), filepath.Join(t.TempDir(), "away")
	expect.NoError(t, os.Rename(dir, away))
	expect.NoError(t, os.Mkdir(dir, 0o755))
	r.Refresh()
	r.eventually("it is reported", func() bool {
		return strings.Contains(strings.Join(r.Status().Warnings, "\n"), "_PIN of fruit cannot be read, and what it said before stays in force: it is away, and so are all versions")
	})
	r.serves("fruit", "1")
	expect.NoError(t, os.Remove(dir))
	expect.NoError(t, os.Rename(away, dir))
	f.put("fruit", "3", 2, fruit...)
	r.Refresh()
	r.eventually("it is well again", func() bool { return len(r.Status().Warnings) == 0 })
	r.serves("fruit", "1")
	expect.NoError(t, os.Remove(filepath.Join(dir, "_PIN")))
	r.Refresh()
	r.serves("fruit", "3")
}

// TestPinAwayFromChangedVersion: a version that was rewritten and is not pinned is not loaded again in place of the pinned one.
func TestPinAwayFromChangedVersion(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	f.put("fruit", "2", 2, "fig")
	r := f.run()
	r.serves("fruit", "2")
	r.stop()
	f.remove("fruit", "2")
	f.put("fruit", "2", 2, "fig", "plum", "sloe")
	f.pin("fruit", `version = "1"`)
	r = f.run()
	r.serves("fruit", "1")
}

// The time of a pin ends by the clock of the node, whether the source can be read or not, also after a restart.
func TestPinEndsWithoutTheSource(t *testing.T) {
	for name, test := range map[string]struct{ down, restart bool }{"with the source": {}, "running": {down: true}, "restarted": {true, true}} {
		f := newFixture(t)
		f.put("fruit", "1", 1, fruit...)
		f.put("fruit", "2", 1, fruit...)
		synctest.Test(t, func(t *testing.T) {
			n := f.follow(t, keeping(2))
			f.pin("fruit", "version = \"1\"\nuntil = "+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			n.Refresh()
			time.Sleep(time.Minute)
			f.source.down.Store(test.down)
			if test.restart {
				n.stop()
				n = f.follow(t, keeping(2))
			}
			time.Sleep(50 * time.Minute)
			if got := n.current("fruit"); got != "1" {
				t.Fatalf("%s: pinned is 1, served is %q", name, got)
			}
			time.Sleep(20 * time.Minute)
			if got := n.current("fruit"); got != "2" || n.Status().DBs["fruit"].Pin != nil {
				t.Errorf("%s: after its time %q is served, and the pin is %v", name, got, n.Status().DBs["fruit"].Pin)
			}
			if f.log.count("the time of the pin to 1 is over") != 1 {
				t.Errorf("%s: the log does not have it once", name)
			}
		})
	}
}
