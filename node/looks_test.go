package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sequins/source"
	"sequins/test/expect"
)

// flaky fails a number of looks at fruit: at its versions or, if its version is set, at that one.
type flaky struct {
	source.Source
	version string
	left    *atomic.Int64
}

func flakyOf(s source.Source, version string, failures int64) flaky {
	f := flaky{s, version, new(atomic.Int64)}
	f.left.Store(failures)
	return f
}

func (s flaky) ReadDir(ctx context.Context, dir string) (source.Entries, error) {
	if s.version == "" && dir == "fruit" && s.left.Add(-1) >= 0 {
		return source.Entries{}, errors.New("connection reset")
	}
	return s.Source.ReadDir(ctx, dir)
}

func (s flaky) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if s.version == version && s.left.Add(-1) >= 0 {
		return source.Contents{}, errors.New("connection reset")
	}
	return s.Source.Contents(ctx, db, version)
}

// The versions of a database cannot be listed at first: the node is ready when it serves what settles afterwards, and not before.
func TestReadyAfterFailedListings(t *testing.T) {
	for failures := range int64(3) {
		f := newFixture(t)
		f.unmarked("fruit", "1", "fig")
		synctest.Test(t, func(t *testing.T) {
			n, stop := f.follow(func(o *Options) { o.Source, o.Settle = flakyOf(f.source, "", failures), 20*time.Second })
			defer stop()
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

// loseFruit makes fruit have been served before a restart, with nothing of it on the disk.
func (f *fixture) loseFruit() {
	f.t.Helper()
	f.put("fruit", "1", 2, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	expect.NoError(f.t, os.RemoveAll(filepath.Join(f.store, "data", "fruit", "1")))
}

// The first look at what was served before a restart fails. When it is served again, nothing is wrong any more.
func TestWarningOfServedEnds(t *testing.T) {
	f := newFixture(t)
	f.loseFruit()
	synctest.Test(t, func(t *testing.T) {
		n, stop := f.follow(func(o *Options) { o.Source, o.RefreshPeriod = flakyOf(f.source, "1", 1), time.Minute })
		defer stop()
		time.Sleep(30 * time.Minute)
		if w := strings.Join(n.Status().Warnings, "\n"); n.Set([]byte("fruit")).Current().Name != "1" || w != "" {
			t.Errorf("serves %q, with %q", n.Set([]byte("fruit")).Current().Name, w)
		}
	})
}

// What was served before a restart is pinned, and neither here nor in the source: a warning says so.
func TestPinnedAndGone(t *testing.T) {
	f := newFixture(t)
	f.loseFruit()
	f.remove("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	f.pin("fruit", `version = "1"`)
	synctest.Test(t, func(t *testing.T) {
		n, stop := f.follow(func(o *Options) { o.RefreshPeriod = time.Minute })
		defer stop()
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
		n, stop := f.follow(func(o *Options) { o.RefreshPeriod, o.DBRemoveTimeout = 2*time.Hour, time.Hour })
		defer stop()
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
