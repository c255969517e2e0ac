package node

import (
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

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/load"
	"sequins/observe/status"
	"sequins/store"
	"sequins/test/expect"
)

// slow makes loads take long: a record a second.
func slow(o *Options) {
	o.each(func(d *DB) { d.Load = load.Options{Throttle: time.Second, Workers: 1} })
}

// TestRestartServesAtOnce: what is complete on the disk answers the first
// request, although nothing can be loaded.
func TestRestartServesAtOnce(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()

	f.put("fruit", "2", 2, fruit...)
	g, open := f.source.shut()
	defer open()
	r = f.run()
	if got := r.get("/fruit/fig"); got.body != "fig of 1" {
		t.Errorf("the first request: %+v", got)
	}
	<-g.waiting // while the newest loads
}

// TestRestartKeepsFinishedPartitions stops a node in the middle of a load.
func TestRestartKeepsFinishedPartitions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 8, fruit...)
	r := f.run(slow)
	block := func(i int) string {
		return filepath.Join(f.dir("fruit", "1"), "0000"+string(rune('0'+i))+".block")
	}
	r.eventually("a first partition is there", func() bool {
		_, err := os.Stat(block(0))
		return err == nil
	})
	before, err := os.Stat(block(0))
	expect.NoError(t, err)
	r.eventually("it can be read by name", func() bool {
		h := r.Set([]byte("fruit")).AcquireVersion("1", "")
		if h == nil {
			return false
		}
		defer h.Release()
		_, _, err := h.Get(0, []byte("no such key"), new(blocks.Scratch))
		return err == nil
	})
	if got := r.get("/fruit/fig"); got.status != http.StatusServiceUnavailable || got.version != "" {
		t.Errorf("half a version is being served: %+v", got)
	}
	if s := r.onNode("fruit", "1"); s.Progress == nil || s.Progress.PartitionsDone == 0 || s.Progress.PartitionsDone == 8 ||
		s.Progress.Partitions != 8 || s.State != "BUILDING" {
		t.Errorf("progress: %+v", s)
	}
	r.stop()
	if f.log.count("version failed") != 0 || f.log.count("level=ERROR") != 0 {
		t.Error("a shutdown looks like a failure")
	}

	r = f.run()
	r.serves("fruit", "1")
	after, err := os.Stat(block(0))
	expect.NoError(t, err)
	if !os.SameFile(before, after) {
		t.Error("a finished partition was loaded again")
	}
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 1" {
			t.Errorf("%s: %+v", key, got)
		}
	}
}

// TestServedIsGone: of what was served before a restart nothing is left, and the source has only a newer version. None that is older is served.
func TestServedIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	expect.NoError(t, os.RemoveAll(f.dir("fruit", "1")))
	f.remove("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	r = f.run()
	r.serves("fruit", "2")
	if f.log.count("older") > 0 {
		t.Error("the log has an older version")
	}
}

// TestFoundOnce: a version behind one that fails is found once, when it is needed.
func TestFoundOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("fruit", "2", 2, fruit...)
	f.damage("fruit", "2", "part-r-00000")
	f.run().serves("fruit", "1")
	for _, version := range []string{"version=1", "version=2"} {
		if n := f.log.count("version found", version); n != 1 {
			t.Errorf("%s was found %d times", version, n)
		}
	}
}

func TestStartWithoutSource(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()

	f.source.down.Store(true)
	f.put("fruit", "2", 2, fruit...)
	r = f.run()
	if got := r.get("/fruit/fig"); got.body != "fig of 1" {
		t.Errorf("without a source: %+v", got)
	}
	s := r.Status()
	if s.SourceError != errDown.Error() || s.SourceErrorSince.IsZero() || !s.RefreshedAt.IsZero() {
		t.Errorf("status: %+v", s)
	}
	if ok, reason := r.Ready(""); !ok {
		t.Errorf("not ready: %s", reason)
	}
	f.source.down.Store(false)
	r.serves("fruit", "2") // without being asked to
	if s := r.Status(); s.SourceError != "" || !s.SourceErrorSince.IsZero() || s.RefreshedAt.IsZero() {
		t.Errorf("status: %+v", s)
	}
	if f.log.count("can be listed again") != 1 {
		t.Error("the log does not say that the source is back")
	}
}

func TestUnreadableSourceChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	r := f.run()
	r.serves("fruit", "1")
	r.serves("nuts", "1")
	f.source.down.Store(true)
	f.remove("nuts")
	r.Refresh()
	r.eventually("it is noticed", func() bool { return r.Status().SourceError != "" })
	for path, want := range map[string]string{"/fruit/fig": "fig of 1", "/nuts/almond": "almond of 1"} {
		if got := r.get(path); got.body != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if ok, reason := r.Ready(""); !ok {
		t.Errorf("not ready: %s", reason)
	}
	f.source.down.Store(false)
	r.eventually("its absence is noticed", func() bool { return len(r.Status().Warnings) == 1 })
	if got := r.get("/nuts/almond"); got.body != "almond of 1" {
		t.Errorf("a db that is absent for a moment: %+v", got)
	}
}

func TestStartWithoutAnything(t *testing.T) {
	f := newFixture(t)
	f.source.down.Store(true)
	r := f.run()
	if got := r.get("/readyz"); got.status != http.StatusServiceUnavailable {
		t.Errorf("ready: %+v", got)
	}
	f.source.down.Store(false)
	r.eventually("ready: an empty source is served completely", func() bool {
		return r.get("/readyz").status == http.StatusOK
	})
}

// TestStartSweeps removes what belongs to no live version.
func TestStartSweeps(t *testing.T) {
	f := newFixture(t)
	f.put("nuts", "1", 1, "almond")
	for _, v := range []string{"1", "2", "3"} {
		f.put("fruit", v, 1, fruit...)
		r := f.run()
		r.serves("fruit", v)
		r.serves("nuts", "1")
		r.stop()
		if v != "3" { // put it aside, so that the next version does not replace it
			expect.NoError(t, os.Rename(filepath.Join(f.store, "data", "fruit"), filepath.Join(f.store, v)))
		}
	}
	for _, v := range []string{"1", "2"} {
		expect.NoError(t, os.Rename(filepath.Join(f.store, v, v), filepath.Join(f.store, "data", "fruit", v)))
	}
	f.remove("fruit", "3")
	f.remove("fruit", "1")
	if got := f.onDisk("fruit"); got != "1 2 3" {
		t.Fatalf("on the disk: %s", got)
	}
	r := f.run()
	if got := r.get("/fruit/fig"); got.body != "fig of 3" {
		t.Errorf("version 3 is not in the source, but was served before: %+v", got)
	}
	r.eventually("the others are gone", func() bool { return f.onDisk("fruit") == "3" })
}

func TestShutdown(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 8, fruit...)
	r := f.run(slow)
	r.eventually("it loads", func() bool { return f.log.count("load started") == 1 })
	if _, err := store.Open(f.store); err == nil {
		t.Error("the store of a running node is not locked")
	}
	began := time.Now()
	r.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if _, err := r.try("/livez"); err == nil {
		t.Error("a node that is shut down answers")
	}
	if f.log.count("level=ERROR") != 0 {
		t.Error("a shutdown makes errors")
	}
	s, err := store.Open(f.store)
	if err != nil {
		t.Fatalf("after the shutdown: %v", err)
	}
	expect.NoError(t, s.Close())
}

func TestDiskFull(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	// A file in the place of the version's directory is as good as a full disk.
	obstacle := filepath.Join(f.store, "data", "fruit", "2")
	expect.NoError(t, os.WriteFile(obstacle, nil, 0o644))
	f.put("fruit", "2", 1, fruit...)
	r.Refresh()
	r.eventually("2 cannot be loaded", func() bool { return r.onNode("fruit", "2").State == "ERROR" })
	if got := r.get("/fruit/fig"); got.body != "fig of 1" {
		t.Errorf("meanwhile: %+v", got)
	}
	expect.NoError(t, os.Remove(obstacle))
	r.Refresh()
	r.serves("fruit", "2")
}

// A fullDisk has no space for states of databases.
type fullDisk struct {
	fsys.FS
	full  atomic.Bool
	tried atomic.Int32
}

func (f *fullDisk) Create(name string) (fsys.File, error) {
	if strings.Contains(name, "STATE.json") && f.full.Load() {
		f.tried.Add(1)
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	return f.FS.Create(name)
}

// storeOn opens the store on a file system with faults.
func (f *fixture) storeOn(disk fsys.FS) *store.Store {
	f.t.Helper()
	local, err := store.OpenFS(disk, f.store)
	expect.NoError(f.t, err)
	return local
}

// TestSwitchIsRecordedFirst: nobody is answered from a version before it is recorded that it is served, so that no
// restart goes back from it.
func TestSwitchIsRecordedFirst(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	disk := &fullDisk{FS: fsys.OS}
	synctest.Test(t, func(t *testing.T) {
		run := func() *following {
			return f.follow(t, func(o *Options) {
				o.Store, o.Cluster, o.VersionRemoveTimeout = f.storeOn(disk), newCluster(), time.Hour
			})
		}
		n := run()
		time.Sleep(time.Second)
		disk.full.Store(true)
		f.put("fruit", "2", 1, fruit...)
		n.Refresh()
		time.Sleep(time.Hour)
		s := n.onNode("fruit", "2")
		if got := disk.tried.Load(); n.current("fruit") != "1" || got < 15 || got > 40 || !strings.Contains(s.Error, "cannot be recorded") {
			t.Errorf("current is %q after %d attempts: %+v", n.current("fruit"), got, s)
		}
		if got := f.log.count("level=ERROR", "no space left"); got != 1 {
			t.Errorf("logged %d times", got)
		}
		n.stop()

		n = run()
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "1")
		disk.full.Store(false)
		time.Sleep(maxBackoff)
		if s := n.onNode("fruit", "2"); n.current("fruit") != "2" || s.Error != "" {
			t.Errorf("with space on the disk, current is %q: %+v", n.current("fruit"), s)
		}
		n.stop()
		disk.full.Store(true)
		n = run()
		n.expectCurrent(t, "fruit", "2")
		n.stop()
	})
}

// TestSwitchWithoutARecord: a switch that cannot be recorded is made nevertheless if nothing is served, or not all of it
// can be read any more, and is recorded when that is possible.
func TestSwitchWithoutARecord(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	disk := &fullDisk{FS: fsys.OS}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{0}
		local := f.storeOn(disk)
		n := f.follow(t, func(o *Options) { o.Store, o.Cluster, o.VersionRemoveTimeout = local, c, time.Hour })
		time.Sleep(time.Second)
		disk.full.Store(true)
		c.hold("1", 1)
		time.Sleep(time.Second)
		if n.current("fruit") != "1" || f.log.count("level=ERROR", "a restart may go back") != 1 {
			t.Fatalf("without a version before, current is %q", n.current("fruit"))
		}
		f.put("fruit", "2", 2, fruit...)
		n.Refresh()
		time.Sleep(time.Second)
		c.hold("2", 1)
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "1") // all of 1 can be read
		c.hold("1")                      // the others have removed it
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "2") // not all of 1 can be read
		disk.full.Store(false)
		time.Sleep(maxBackoff)
		if served := n.remembers(t, "fruit").Served; served.Name != "2" {
			t.Errorf("recorded is %q", served)
		}
	})
}

func TestOptionsAreRequired(t *testing.T) {
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "source") {
		t.Errorf("New without anything: %v", err)
	}
}

func TestRunFailsWithItsListener(t *testing.T) {
	f := newFixture(t)
	r := f.run()
	r.o.Listener.Close()
	select {
	case err := <-r.done:
		close(r.done)
		if err == nil {
			t.Error("Run ended without an error")
		}
	case <-time.After(patience):
		t.Error("Run goes on without a listener")
	}
	r.cancel()
}

// TestUnreadableAtStart: a node is not ready while it cannot read what it has of a database. What the source does not list keeps it from nothing.
func TestUnreadableAtStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	data := filepath.Join(f.store, "data")
	expect.NoError(t, os.Rename(filepath.Join(data, "fruit"), filepath.Join(f.store, "aside")))
	expect.NoError(t, os.WriteFile(filepath.Join(data, "fruit"), nil, 0o644)) // a directory that gives an error
	expect.NoError(t, os.Mkdir(filepath.Join(data, "foreign"), 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(data, "foreign/STATE.json"), []byte("?"), 0o644))
	r = f.run()
	r.eventually("the load fails", func() bool { return r.onNode("fruit", "1").State == status.Error })
	if got := r.get("/readyz"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "version 1 of fruit") {
		t.Errorf("it is ready: %+v", got)
	}
	expect.NoError(t, os.RemoveAll(filepath.Join(data, "fruit")))
	expect.NoError(t, os.Rename(filepath.Join(f.store, "aside"), filepath.Join(data, "fruit")))
	r.Apply(*r.reloadable.Load())
	r.eventually("it is ready", func() bool { return r.get("/readyz").status == http.StatusOK })
}

// TestFaultyAndDamagedAtStart: a version that is faulty does not keep a node from being ready because the state of the database is damaged.
func TestFaultyAndDamagedAtStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	expect.NoError(t, os.RemoveAll(f.dir("fruit", "1")))
	expect.NoError(t, os.WriteFile(f.statePath("fruit"), []byte("?"), 0o644))
	f.damage("fruit", "1", "part-r-00001")
	r = f.run()
	r.eventually("it is ready", func() bool { return r.get("/readyz").status == http.StatusOK })
}
