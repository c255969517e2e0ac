package node

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/fsys"
	"sequins/observe/status"
	"sequins/store"
	"sequins/test/expect"
)

// removeSoon has a db removed after as few looks as possible.
func removeSoon(o *Options) { o.DBRemoveTimeout = 0 }

// An unmounted source is an empty directory: nothing is removed, whether the node
// runs or starts, and everything goes on when it is mounted again.
func TestUnmountedSource(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	r := f.run(removeSoon)
	r.serves("fruit", "1")
	r.serves("nuts", "1")

	away := f.root + ".unmounted"
	expect.NoError(t, os.Rename(f.root, away))
	expect.NoError(t, os.Mkdir(f.root, 0o755))
	unmounted := func(r *running) {
		t.Helper()
		r.eventually("it is noticed", func() bool {
			r.Refresh()
			return strings.Contains(r.Status().SourceError, "lists none of the 2 databases")
		})
		for range 2 * minAbsentLooks {
			r.Refresh()
		}
		for path, want := range map[string]string{"/fruit/fig": "fig of 1", "/nuts/almond": "almond of 1"} {
			if got := r.get(path); got.body != want {
				t.Errorf("%s: %+v", path, got)
			}
		}
	}
	unmounted(r)
	r.stop()
	r = f.run(removeSoon)
	unmounted(r)

	expect.NoError(t, os.Remove(f.root))
	expect.NoError(t, os.Rename(away, f.root))
	r.update("fruit", "2", 1, fruit...)
	if s := r.Status(); s.SourceError != "" || len(s.Warnings) != 0 {
		t.Errorf("status: %q, %q", s.SourceError, s.Warnings)
	}
}

// The databases of a source that has others now are served on, and the others are loaded. What is missing is removed when it
// is known that this is the source: when one of the others is served.
func TestRenamedDatabase(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run(removeSoon)
	r.serves("fruit", "1")
	expect.NoError(t, os.Rename(filepath.Join(f.root, "fruit"), filepath.Join(f.root, "obst")))
	expect.NoError(t, os.Rename(filepath.Join(f.root, "obst", "1"), filepath.Join(f.root, "obst", "_1")))
	lines := func() string { return strings.Join(r.Status().Warnings, "\n") }
	r.Refresh()
	r.eventually("it is said", func() bool {
		return strings.Contains(lines(), "fruit is not in the source, and neither is any other database that is served here")
	})
	for range 3 * minAbsentLooks {
		r.look()
	}
	if got := r.get("/fruit/fig"); got.body != "fig of 1" || r.Status().SourceError != "" {
		t.Errorf("%+v, %q", got, r.Status().SourceError)
	}
	if log := f.log.String(); strings.Count(log, "neither is any other database that is served here") != 1 {
		t.Errorf("it is not said once:\n%s", log)
	}

	expect.NoError(t, os.Rename(filepath.Join(f.root, "obst", "_1"), filepath.Join(f.root, "obst", "1")))
	r.Refresh()
	r.serves("obst", "1")
	r.eventually("the old name is removed", func() bool {
		r.Refresh()
		_, there := r.Status().DBs["fruit"]
		return !there && lines() == ""
	})
}

// A db that one listing lacks is served on, over a restart, too, and removed when
// it has been absent for long enough since the start.
func TestAbsentDatabase(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	served := func(n *following, db string) bool {
		s := n.Set([]byte(db))
		return s != nil && s.Current().Name == "1"
	}
	hourly := func(o *Options) { o.RefreshPeriod, o.DBRemoveTimeout = time.Hour, 10*time.Hour }
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, hourly)
		time.Sleep(time.Minute)
		f.remove("nuts")
		time.Sleep(5 * time.Hour)
		if !served(n, "nuts") {
			t.Error("removed after five hours of ten")
		}
		if w := n.Status().Warnings; len(w) != 1 || !strings.Contains(w[0], "nuts is not in the source since") {
			t.Errorf("warnings: %q", w)
		}
		n.stop()

		n = f.follow(t, hourly)
		time.Sleep(9*time.Hour + time.Minute)
		if !served(n, "nuts") {
			t.Error("removed nine hours after a restart, of ten")
		}
		time.Sleep(2 * time.Hour)
		if n.Set([]byte("nuts")) != nil || f.onDisk("nuts") != "" {
			t.Errorf("not removed eleven hours after a restart; on the disk: %q", f.onDisk("nuts"))
		}
		if !served(n, "fruit") {
			t.Error("the other db is gone, too")
		}
		n.stop()
	})
}

// An absence that is over does not count towards the next one.
func TestAbsenceEnds(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	r := f.run()
	r.serves("fruit", "1")
	r.serves("nuts", "1")
	noted := func() bool { return len(r.Status().Warnings) > 0 }
	hidden := filepath.Join(f.root, ".nuts")
	for range 2 {
		expect.NoError(t, os.Rename(filepath.Join(f.root, "nuts"), hidden))
		r.Refresh()
		r.eventually("its absence is shown", noted)
		expect.NoError(t, os.Rename(hidden, filepath.Join(f.root, "nuts")))
		r.Refresh()
		r.eventually("its presence is shown", func() bool { return !noted() })
	}
	expect.NoError(t, os.Rename(filepath.Join(f.root, "nuts"), hidden))
	r.Refresh()
	r.eventually("its absence is shown", noted)
	r.stop()
	expect.NoError(t, os.Rename(hidden, filepath.Join(f.root, "nuts")))
	r = f.run()
	r.serves("nuts", "1")
	r.eventually("a restart notices that the absence is over", func() bool { return !noted() })
}

// A db whose directory has become empty is served, and said to be.
func TestEmptyDirectoryIsReported(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	n := f.run()
	n.serves("fruit", "1")
	expect.NoError(t, os.RemoveAll(filepath.Join(f.root, "fruit", "1")))
	n.Refresh()
	n.eventually("it is reported", func() bool {
		return strings.Contains(strings.Join(n.Status().Warnings, "\n"), "fruit has no version in the source any more; version 1 is served on")
	})
	n.serves("fruit", "1")
	n.update("fruit", "2", 2, "fig")
	n.eventually("it is well", func() bool { return len(n.Status().Warnings) == 0 })
}

// A db that never had a version is forgotten as soon as its directory is gone.
func TestEmptyDirectoryThatGoes(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	dir := filepath.Join(f.root, "nuts")
	expect.NoError(t, os.Mkdir(dir, 0o755))
	n := f.run()
	n.serves("fruit", "1")
	n.eventually("it is known", func() bool { return n.Status().DBs["nuts"].Error == "there are no versions in the source" })
	expect.NoError(t, os.Remove(dir))
	n.Refresh()
	n.eventually("it is forgotten", func() bool { _, found := n.Status().DBs["nuts"]; return !found })

	expect.NoError(t, os.MkdirAll(filepath.Join(dir, "1"), 0o755))
	for _, name := range []string{"part-00000", "_SUCCESS"} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, "1", name), []byte("SEQ no"), 0o644))
	}
	n.Refresh()
	n.eventually("its version has failed", func() bool { return n.onNode("nuts", "1").State == "ERROR" })
	expect.NoError(t, os.RemoveAll(dir))
	n.Refresh()
	n.eventually("it is forgotten, too", func() bool { _, found := n.Status().DBs["nuts"]; return !found })
}

// A database that goes before anything of it was served goes at once, or when the load that has begun ends, and is never called served.
func TestNeverServedDatabaseGoes(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	f.damage("nuts", "1", "part-r-00000")
	r := f.run()
	r.serves("fruit", "1")
	r.eventually("it has failed", func() bool { return r.onNode("nuts", "1").State == status.Error })
	f.remove("nuts")
	r.Refresh()
	r.eventually("it is gone", func() bool { _, found := r.Status().DBs["nuts"]; return !found })
	if f.log.count("served on") != 0 {
		t.Error("it is served on")
	}
}

// A stuckDisk does not delete contents.
type stuckDisk struct {
	fsys.FS
	version string // only of this one; empty: of all
	stuck   atomic.Bool
	refused atomic.Int32
}

func (d *stuckDisk) Remove(name string) error {
	if d.stuck.Load() && strings.HasSuffix(name, "MANIFEST.json") && strings.Contains(name, "/"+d.version) {
		d.refused.Add(1)
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.EROFS}
	}
	return d.FS.Remove(name)
}

// A database whose files could not be deleted, and that is in the source again, is served again.
func TestBackBeforeDeleted(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	disk := &stuckDisk{FS: fsys.OS}
	r := f.run(removeSoon, func(o *Options) {
		expect.NoError(t, o.Store.Close())
		o.Store = f.storeOn(disk)
	})
	r.serves("fruit", "1")
	r.serves("nuts", "1")
	disk.stuck.Store(true)
	away := filepath.Join(f.root, "_fruit")
	expect.NoError(t, os.Rename(filepath.Join(f.root, "fruit"), away))
	r.eventually("it is removed", func() bool {
		r.Refresh()
		return r.get("/fruit/fig").status == 404
	})
	r.eventually("its files cannot be deleted", func() bool { return f.log.count("cannot be deleted") > 0 })
	expect.NoError(t, os.Rename(away, filepath.Join(f.root, "fruit")))
	disk.stuck.Store(false)
	r.eventually("it is served again", func() bool {
		r.Refresh()
		return r.get("/fruit/fig").body == "fig of 1"
	})
}

// The files of a database that is removed while the disk is away are deleted when it is back.
func TestRemovedWithoutItsDisk(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	r := f.run(removeSoon)
	r.serves("fruit", "1")
	r.serves("nuts", "1")
	data := filepath.Join(f.store, "data")
	expect.NoError(t, os.Rename(data, data+".away"))
	f.remove("fruit")
	r.eventually("its files cannot be deleted", func() bool {
		r.Refresh()
		return f.log.count("cannot be deleted") > 0
	})
	expect.NoError(t, os.Rename(data+".away", data))
	r.eventually("they are deleted", func() bool {
		r.Refresh()
		_, err := os.Stat(filepath.Join(data, "fruit"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// Files that cannot be deleted are tried again at each refresh, and logged once.
func TestUndeletedIsLoggedOnce(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	disk := &stuckDisk{FS: fsys.OS, version: "1/"}
	r := f.run(func(o *Options) {
		expect.NoError(t, o.Store.Close())
		o.Store = f.storeOn(disk)
	})
	r.serves("fruit", "1")
	disk.stuck.Store(true)
	f.put("fruit", "2", 1, fruit...)
	r.eventually("it is tried again", func() bool {
		r.Refresh()
		return disk.refused.Load() > 3
	})
	if n := f.log.count("cannot be deleted"); n != 1 {
		t.Errorf("%d lines of the log for files that could not be deleted", n)
	}
}

// Directories of databases in which no version is are none that are missed: neither what somebody has put there, nor the state of
// a database that was never served.
func TestDirectoriesWithoutVersions(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.state("nuts", func(s *store.State) { s.Pin = `{"version": "1"}` })
	strange := filepath.Join(f.store, "data", "strange", "file")
	expect.NoError(t, os.MkdirAll(filepath.Dir(strange), 0o755))
	expect.NoError(t, os.WriteFile(strange, nil, 0o644))
	r := f.run()
	r.serves("fruit", "1")
	r.eventually("nuts and strange are no databases", func() bool { return len(r.Status().DBs) == 1 })
	if s := r.Status(); len(s.Warnings) != 0 {
		t.Error(s.Warnings)
	}
	if ok, reason := r.Ready(""); !ok {
		t.Error(reason)
	}
	if got := r.get("/nuts/almond").status; got != http.StatusNotFound {
		t.Error(got)
	}
	if _, err := os.Stat(strange); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.statePath("nuts")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state of nuts: %v", err)
	}
}

// A database of which only the state is left, as after a crash during its removal, or whose directory is somebody's, keeps no node
// from being ready, also while the source cannot be read.
func TestStartWithWhatIsLeft(t *testing.T) {
	for _, down := range []bool{false, true} {
		f := newFixture(t)
		f.put("fruit", "1", 1, fruit...)
		r := f.run()
		r.serves("fruit", "1")
		r.stop()
		f.state("nuts", func(s *store.State) { s.Served = f.manifest("fruit", "1").Content() })
		strange := filepath.Join(f.store, "data", "strange", "file")
		expect.NoError(t, os.MkdirAll(filepath.Dir(strange), 0o755))
		expect.NoError(t, os.WriteFile(strange, nil, 0o644))
		f.source.down.Store(down)
		r = f.run()
		r.serves("fruit", "1")
		r.eventually("it is ready", func() bool {
			ok, _ := r.Ready("")
			return ok
		})
		if n := len(r.Status().DBs); n != 1 {
			t.Errorf("%d databases", n)
		}
		f.source.down.Store(false)
		f.put("nuts", "2", 1, fruit...)
		r.Refresh()
		r.serves("nuts", "2")
		r.stop()
	}
}
