package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
)

// The versions of a database cannot be listed at first: the node is ready when it serves what settles afterwards, and not before.
func TestReadyAfterFailedListings(t *testing.T) {
	for failures := range int32(3) {
		f := newFixture(t)
		f.unmarked("fruit", "1", "fig")
		synctest.Test(t, func(t *testing.T) {
			src := &faultySource{testSource: f.source}
			src.lists.Store(failures)
			n := f.follow(t, func(o *Options) { o.Source, o.Settle = src, 20*time.Second })
			for range 240 {
				time.Sleep(250 * time.Millisecond)
				ready, why := n.Ready("")
				set := n.Set([]byte("fruit"))
				switch served := set != nil && set.Current().Name == "1"; {
				case served:
					return
				case ready:
					t.Fatalf("%d failures: ready although nothing is served: %s", failures, why)
				}
			}
			t.Errorf("%d failures: never served", failures)
		})
	}
}

// lose makes a version of fruit have been served before a restart, with nothing of it on the disk.
func (f *fixture) lose(version string) {
	f.t.Helper()
	f.put("fruit", version, 2, fruit...)
	r := f.run()
	r.serves("fruit", version)
	r.stop()
	expect.NoError(f.t, os.RemoveAll(filepath.Join(f.store, "data", "fruit", version)))
}

// The first look at what was served before a restart fails. When it is served again, nothing is wrong any more.
func TestWarningOfServedEnds(t *testing.T) {
	f := newFixture(t)
	f.lose("2")
	synctest.Test(t, func(t *testing.T) {
		src := &faultySource{testSource: f.source}
		src.contents.Store(1)
		n := f.follow(t, func(o *Options) { o.Source, o.RefreshPeriod = src, time.Minute })
		time.Sleep(30 * time.Minute)
		if w := strings.Join(n.Status().Warnings, "\n"); n.current("fruit") != "2" || w != "" {
			t.Errorf("serves %q, with %q", n.current("fruit"), w)
		}
	})
}

// What was served before a restart is pinned, and neither here nor in the source: a warning says so.
func TestPinnedAndGone(t *testing.T) {
	f := newFixture(t)
	f.lose("1")
	f.remove("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	f.pin("fruit", `version = "1"`)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.RefreshPeriod = time.Minute })
		time.Sleep(30 * time.Minute)
		if w := strings.Join(n.Status().Warnings, "\n"); !strings.Contains(w, "version 1 of fruit is pinned, but is not in the source") {
			t.Errorf("warnings %q", w)
		}
	})
}

// Three refreshes have to miss a database before it is removed, also if another one, of which nothing was served, goes at the same time.
func TestThreeLooksMissIt(t *testing.T) {
	f := newFixture(t)
	f.put("keep", "1", 1, fruit...)
	f.put("fruit", "1", 1, fruit...)
	expect.NoError(t, os.MkdirAll(filepath.Join(f.root, "empty"), 0o755))
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.RefreshPeriod, o.DBRemoveTimeout = 2*time.Hour, time.Hour })
		time.Sleep(time.Hour)
		f.remove("fruit")
		f.remove("empty")
		time.Sleep(4 * time.Hour) // two refreshes
		if n.Set([]byte("fruit")) == nil {
			t.Error("it is removed after two of them")
		}
		time.Sleep(2 * time.Hour)
		if n.Set([]byte("fruit")) != nil {
			t.Error("it is not removed after three of them")
		}
	})
}
