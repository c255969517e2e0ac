package node

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
)

// TestPeersLate: all nodes restart together, and this one, which holds nothing of what was served, looks before the others
// have advertised it. It serves the version when they have, whatever the source says of it; also after long, if that has nothing.
func TestPeersLate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *fixture)
		late   time.Duration
	}{
		"source away":  {func(f *fixture) { f.source.down.Store(true) }, wholeTimeout / 2},
		"version gone": {func(f *fixture) { f.remove("fruit", "1") }, wholeTimeout / 2},
		"db gone":      {func(f *fixture) { f.remove("fruit") }, wholeTimeout / 2},
		"being written again": {func(f *fixture) {
			expect.NoError(f.t, os.Mkdir(filepath.Join(f.root, "fruit/1/_temporary"), 0o755))
		}, wholeTimeout / 2},
		"no version left": {func(f *fixture) {
			f.remove("fruit", "0")
			f.remove("fruit", "1")
		}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("nuts", "1", 1, "almond")
			f.put("fruit", "0", 2, fruit...)
			f.put("fruit", "1", 2, fruit...)
			synctest.Test(t, func(t *testing.T) {
				var c *testCluster
				run := func() *following {
					c = newCluster()
					c.owned = []int{}
					return f.follow(t, func(o *Options) { o.Cluster, o.RefreshPeriod = c, time.Minute })
				}
				n := run()
				c.hold("1", 0, 1)
				time.Sleep(10 * time.Second)
				n.stop()
				test.change(f)
				n = run()
				time.Sleep(test.late)
				n.expectCurrent(t, "fruit", "") // nobody holds it
				c.hold("1", 0, 1)
				time.Sleep(time.Second)
				n.expectCurrent(t, "fruit", "1")
			})
		})
	}
}

// A badSector makes the file system fail for a file.
type badSector struct {
	fsys.FS
	open, stat atomic.Pointer[string] // the end of its name
}

func fails(suffix *atomic.Pointer[string], name string) bool {
	s := suffix.Load()
	return s != nil && strings.HasSuffix(name, *s)
}

func (b *badSector) Open(name string) (fsys.File, error) {
	if fails(&b.open, name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EIO}
	}
	return b.FS.Open(name)
}

func (b *badSector) Stat(name string) (fs.FileInfo, error) {
	if fails(&b.stat, name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: syscall.EIO}
	}
	return b.FS.Stat(name)
}

// TestServedUnreadable: a record of what was served that cannot be read for a moment is no reason to serve an older version.
func TestServedUnreadable(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	disk := &badSector{FS: fsys.OS}
	synctest.Test(t, func(t *testing.T) {
		var c *testCluster
		run := func(owned []int) *following {
			c = newCluster()
			c.owned = owned
			return f.follow(t, func(o *Options) {
				o.Store, o.Cluster, o.VersionRemoveTimeout = f.storeOn(disk), c, time.Hour
			})
		}
		n := run(nil)
		time.Sleep(time.Second)
		c.own(0)
		c.hold("2", 1)
		f.put("fruit", "2", 2, fruit...)
		n.Refresh()
		time.Sleep(10 * time.Second)
		if got := n.current("fruit"); got != "2" || named(n.Set([]byte("fruit")), "1") == nil {
			t.Fatalf("current is %q", got)
		}
		n.stop()
		suffix := "STATE.json"
		disk.open.Store(&suffix)
		n = run([]int{0}) // the other node is not there yet
		disk.open.Store(nil)
		time.Sleep(10 * time.Second)
		if got := n.current("fruit"); got == "1" {
			t.Errorf("after a restart it serves %q", got)
		}
		c.hold("2", 1)
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "2") // the other node is there
	})
}

// TestServedUnreadableAlone: also a node without a cluster does not go behind the greatest name on its disk, although of that only a load has begun.
func TestServedUnreadableAlone(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) {})
		time.Sleep(time.Second)
		n.stop()
		local, err := store.Open(f.store)
		expect.NoError(t, err)
		m := f.manifest("fruit", "1")
		m.Version, m.Input = "2", content.Sum("2")
		_, err = local.Create("fruit", m)
		expect.NoError(t, err)
		expect.NoError(t, local.Close())
		expect.NoError(t, os.WriteFile(f.statePath("fruit"), nil, 0o644))
		f.source.down.Store(true)
		n = f.follow(t, func(o *Options) {})
		time.Sleep(time.Minute)
		if got := n.current("fruit"); got != "" || f.onDisk("fruit") != "1 2" {
			t.Errorf("without the source current is %q, and on the disk are %s", got, f.onDisk("fruit"))
		}
		f.put("fruit", "2", 2, fruit...)
		f.source.down.Store(false)
		time.Sleep(maxBackoff)
		n.expectCurrent(t, "fruit", "2")
	})
}

// TestUnreadableManifest: a version whose manifest cannot be looked at keeps no others from being served.
func TestUnreadableManifest(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("nuts", "1", 1, "almond")
	disk := &badSector{FS: fsys.OS}
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) {})
		time.Sleep(time.Second)
		n.stop()
		suffix := strings.TrimPrefix(filepath.Join(f.dir("fruit", "1"), "MANIFEST.json"), f.store)
		disk.stat.Store(&suffix)
		f.source.down.Store(true)
		n = f.follow(t, func(o *Options) {
			o.Store = f.storeOn(disk)
		})
		time.Sleep(time.Second)
		n.expectCurrent(t, "nuts", "1") // the other database
	})
}

// A closedSource may not be read below version 0.
type closedSource struct{ *testSource }

func (s *closedSource) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if version == "0" {
		return source.Contents{}, fs.ErrPermission
	}
	return s.testSource.Contents(ctx, db, version)
}

func (s *closedSource) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if version == "0" {
		return nil, fs.ErrPermission
	}
	return s.testSource.Open(ctx, db, version, file, o)
}

// TestOldVersionThatMayNotBeRead: a version that cannot be read, and may have a marker, does not keep others without one
// from being loaded for good.
func TestOldVersionThatMayNotBeRead(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "0", "fig")
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) {
			o.Source, o.Settle = &closedSource{f.source}, 3*time.Second
			o.each(always)
		})
		time.Sleep(10 * time.Second)
		n.expectCurrent(t, "fruit", "") // after a few looks
		time.Sleep(5 * time.Minute)
		n.expectCurrent(t, "fruit", "1")
	})
}

// TestServedIsDamaged: what was served before a restart, and cannot be read or loaded again, does not keep the node without
// anything for good.
func TestServedIsDamaged(t *testing.T) {
	for name, damage := range map[string]func(f *fixture){
		"the input of the source is damaged": func(f *fixture) {
			f.damage("fruit", "2", "part-r-00000")
			f.damage("fruit", "2", "part-r-00001")
		},
		"it is incomplete": func(f *fixture) {
			expect.NoError(f.t, os.Mkdir(filepath.Join(f.root, "fruit/2/_temporary"), 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("fruit", "1", 2, fruit...)
			synctest.Test(t, func(t *testing.T) {
				w := waitForInput(t, f)
				damage(f)
				w.restart(nil) // the other nodes do not come back
				time.Sleep(time.Hour)
				if got := w.current(); got != "1" || f.log.count("level=ERROR", "is lost") == 0 {
					t.Errorf("current is %q", got)
				}
			})
		})
	}
}
