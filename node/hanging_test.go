package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/fsys"
	"sequins/internal/sleep"
	"sequins/source"
)

// A deadSource hangs in every listing until it is let go, whatever the context says, as system calls do.
type deadSource struct {
	source.Source
	release chan struct{}
}

func (s deadSource) ReadDir(context.Context, string) (source.Entries, error) {
	<-s.release
	return source.Entries{Dirs: []string{"fruit"}}, nil
}

// A node serves what it has although its source hangs, and ends when it is told to.
func TestSourceThatHangs(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()

	dead := deadSource{f.source, make(chan struct{})}
	defer close(dead.release)
	r = f.run(func(o *Options) { o.Source = dead })
	r.eventually("it serves", func() bool { return r.get("/fruit/fig").body == "fig of 1" })
	r.Refresh()
	r.stop()
}

// An impatientSource answers no listing before its context ends, or, if it has a patience, before a connection of its own has timed out.
type impatientSource struct {
	source.Source
	patience time.Duration
}

func (s impatientSource) ReadDir(ctx context.Context, _ string) (source.Entries, error) {
	if s.patience > 0 {
		return source.Entries{}, errors.Join(sleep.For(ctx, s.patience), fmt.Errorf("dial: %w", context.DeadlineExceeded))
	}
	<-ctx.Done()
	return source.Entries{}, ctx.Err()
}

// Only an error of a listing whose time is over says how long that was.
func TestListingOutOfTime(t *testing.T) {
	for _, c := range []struct {
		patience time.Duration
		want     bool
	}{{0, true}, {time.Second, false}} {
		f := newFixture(t)
		synctest.Test(t, func(t *testing.T) {
			n := f.follow(t, func(o *Options) { o.Source = impatientSource{f.source, c.patience} })
			time.Sleep(startTimeout + time.Second)
			if said := n.Status().SourceError; said == "" || strings.Contains(said, "not listed within") != c.want {
				t.Errorf("patience %v: %q", c.patience, said)
			}
		})
	}
}

// A hungDisk does not list the directory of one database until it is released.
type hungDisk struct {
	fsys.FS
	db      string
	release chan struct{}
}

func (d hungDisk) ReadDir(dir string) ([]fs.DirEntry, error) {
	if filepath.Base(dir) == d.db {
		<-d.release
	}
	return d.FS.ReadDir(dir)
}

// The other databases do not wait for one on whose directory the disk hangs at the start.
func TestDirectoryThatHangs(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	r := f.run()
	r.serves("fruit", "1")
	r.serves("nuts", "1")
	r.stop()
	synctest.Test(t, func(t *testing.T) {
		disk := hungDisk{fsys.OS, "nuts", make(chan struct{})}
		n := f.follow(t, func(o *Options) { o.Store = f.storeOn(disk) })
		n.expectCurrent(t, "fruit", "1")
		n.expectCurrent(t, "nuts", "")
		if f.log.count("the start takes long") != 1 {
			t.Error("it is not logged")
		}
		close(disk.release)
		synctest.Wait()
		n.expectCurrent(t, "nuts", "1")
	})
}

// A node that is told to end while it opens what is on its disk does not begin to serve.
func TestEndWhileDirectoryHangs(t *testing.T) {
	f := newFixture(t)
	f.put("nuts", "1", 1, "almond")
	r := f.run()
	r.serves("nuts", "1")
	r.stop()
	disk := hungDisk{fsys.OS, "nuts", make(chan struct{})}
	r = f.run(func(o *Options) { o.Store, o.ShutdownDelay = f.storeOn(disk), patience })
	r.cancel()
	r.eventually("it ends", func() bool { return f.log.count("shutting down") == 2 })
	close(disk.release)
	r.stop()
	if !r.admitted().IsZero() {
		t.Error("it has begun to serve")
	}
}
