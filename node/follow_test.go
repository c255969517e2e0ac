package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/content"
	"sequins/load"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version"
	"sequins/version/discovery"
)

func requireSuccess(d *DB) { d.Load.RequireSuccess = true }

// finish gives a version the _SUCCESS file that was taken from it.
func (f *fixture) finish(db, version string) {
	f.t.Helper()
	expect.NoError(f.t, os.WriteFile(filepath.Join(f.root, db, version, "_SUCCESS"), nil, 0o644))
}

// A watched source notes when its databases are listed.
type watched struct {
	*testSource
	mu    sync.Mutex
	begun time.Time
	at    []time.Duration
}

func (w *watched) ReadDir(ctx context.Context, dir string) (source.Entries, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if dir == "" {
		w.at = append(w.at, time.Since(w.begun))
	}
	return w.testSource.ReadDir(ctx, dir)
}

func (w *watched) times() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.at
	w.at = nil
	return at
}

func TestRefreshPeriod(t *testing.T) {
	f := newFixture(t)
	synctest.Test(t, func(t *testing.T) {
		w := &watched{testSource: f.source, begun: time.Now()}
		n := f.follow(t, func(o *Options) { o.Source, o.RefreshPeriod = w, 10*time.Minute })
		time.Sleep(35 * time.Minute)
		if diff := cmp.Diff([]time.Duration{0, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute}, w.times()); diff != "" {
			t.Errorf("listed at:\n%s", diff)
		}
		n.Refresh() // starts the period again
		time.Sleep(11 * time.Minute)
		if diff := cmp.Diff([]time.Duration{35 * time.Minute, 45 * time.Minute}, w.times()); diff != "" {
			t.Errorf("after Refresh, listed at:\n%s", diff)
		}
		n.Apply(Reloadable{RefreshPeriod: time.Hour})
		time.Sleep(90 * time.Minute) // 136
		if diff := cmp.Diff([]time.Duration{106 * time.Minute}, w.times()); diff != "" {
			t.Errorf("with another period, listed at:\n%s", diff)
		}
		n.Apply(Reloadable{})
		time.Sleep(100 * time.Hour)
		if len(w.times()) > 10 {
			t.Error("without a period it goes on listing")
		}
	})
}

// TestBackoff: a source that cannot be read is tried again, more and more
// seldom, although there is no refresh period, and is read as soon as it can.
func TestBackoff(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		w := &watched{testSource: f.source, begun: time.Now()}
		f.source.down.Store(true)
		n := f.follow(t, func(o *Options) { o.Source = w })
		time.Sleep(time.Hour)
		at := w.times()
		if len(at) < 15 || len(at) > 30 || at[1] < minBackoff || at[1] > 2*minBackoff {
			t.Errorf("%d attempts in an hour, at %v", len(at), at)
		}
		for i := 2; i < len(at); i++ {
			if wait := at[i] - at[i-1]; wait > maxBackoff+maxBackoff/8 || wait < at[i-1]-at[i-2]-maxBackoff/8 {
				t.Errorf("attempts at %v and %v", at[i-1], at[i])
			}
		}
		if since := n.Status().SourceErrorSince; time.Since(since) < time.Hour-2*time.Second {
			t.Errorf("unreachable since %v", since)
		}
		f.source.down.Store(false)
		time.Sleep(6 * time.Minute)
		if s := n.Set([]byte("fruit")); s == nil || s.Current().Name != "1" {
			t.Error("it does not notice that the source is back")
		}
	})
}

// TestBackoffOfOneDatabase: the versions of one db cannot be listed.
func TestBackoffOfOneDatabase(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	synctest.Test(t, func(t *testing.T) {
		src := &partly{testSource: f.source, bad: "nuts"}
		n := f.follow(t, func(o *Options) { o.Source = src })
		time.Sleep(30 * time.Second)
		if n.current("fruit") != "1" || n.current("nuts") != "" {
			t.Errorf("fruit %q, nuts %q", n.current("fruit"), n.current("nuts"))
		}
		if s := n.Status(); s.SourceError != "" || !s.SourceErrorSince.IsZero() || !strings.Contains(s.DBs["nuts"].Error, errDown.Error()) || len(s.Warnings) != 1 {
			t.Errorf("the source: %q; nuts: %q; warnings %q", s.SourceError, s.DBs["nuts"].Error, s.Warnings)
		}
		if ok, reason := n.Ready(""); !ok { // it was tried three times
			t.Errorf("nuts keeps the node out: %s", reason)
		}
		if lists := src.counts(); lists["fruit"] > 6 || // what is served is compared, too
			lists["nuts"] < 4 {
			t.Errorf("listed: %v", lists)
		}
		src.repair()
		time.Sleep(time.Minute)
		if s := n.Status(); n.current("nuts") != "1" || s.DBs["nuts"].Error != "" || len(s.Warnings) != 0 {
			t.Errorf("nuts: %q; warnings %q", s.DBs["nuts"].Error, s.Warnings)
		}
	})
}

// TestReadyWithoutPermission: a db that may not be listed keeps a node out only if it was served before.
func TestReadyWithoutPermission(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	start := func(t *testing.T, reason error) *following {
		return f.follow(t, func(o *Options) { o.Source = &partly{testSource: f.source, bad: "nuts", reason: reason} })
	}
	synctest.Test(t, func(t *testing.T) {
		n := start(t, errDown)
		time.Sleep(minBackoff / 2)
		if ok, reason := n.Ready(""); ok || !strings.Contains(reason, "nuts") {
			t.Errorf("after one failure that may pass: %v, %q", ok, reason)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := start(t, &fs.PathError{Op: "open", Path: "nuts", Err: syscall.EACCES})
		time.Sleep(minBackoff / 2)
		if ok, reason := n.Ready(""); !ok {
			t.Errorf("without a permission: %s", reason)
		}
	})
	r := f.run()
	r.serves("nuts", "1")
	r.stop()
	expect.NoError(t, os.Truncate(filepath.Join(f.dir("nuts", "1"), "00000.block"), 100))
	f.damage("nuts", "1", "part-r-00000")
	synctest.Test(t, func(t *testing.T) {
		n := start(t, fs.ErrPermission)
		time.Sleep(time.Hour)
		if ok, reason := n.Ready(""); ok || !strings.Contains(reason, "nuts") {
			t.Errorf("without what was served before: %v, %q", ok, reason)
		}
	})
}

// A partly source cannot list the versions of one database.
type partly struct {
	*testSource
	mu     sync.Mutex
	bad    string
	reason error // nil stands for errDown
	lists  map[string]int
}

func (s *partly) ReadDir(ctx context.Context, db string) (source.Entries, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists == nil {
		s.lists = map[string]int{}
	}
	s.lists[db]++
	if db != "" && db == s.bad {
		reason := s.reason
		if reason == nil {
			reason = errDown
		}
		return source.Entries{}, reason
	}
	return s.testSource.ReadDir(ctx, db)
}

func (s *partly) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func (s *partly) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = ""
}

// TestExisting looks for the newest versions that exist.
func TestExisting(t *testing.T) {
	versions := map[string]error{ // what listing their files ends in
		"1": nil, "2": nil, "3": nil, "4": nil, "5": fs.ErrNotExist, "6": source.Fault(errDown), "7": nil,
	}
	tests := map[string]struct {
		unfinished []string
		current    string
		exist      []string
		want       []string
		why        string
	}{
		"three good ones":      {nil, "", nil, []string{"3", "4", "6", "7"}, "5: it has just been removed"},
		"newer than current":   {nil, "6", nil, []string{"7"}, ""},
		"nothing newer":        {nil, "7", nil, nil, ""},
		"unfinished":           {[]string{"7", "4"}, "", nil, []string{"1", "2", "3", "6"}, "7: there is no _SUCCESS file yet"},
		"known to exist":       {[]string{"7", "4"}, "", []string{"7", "5"}, []string{"3", "5", "6", "7"}, "4: there is no _SUCCESS file yet"},
		"none":                 {[]string{"1", "2", "3", "4", "6", "7"}, "6", nil, nil, "7: there is no _SUCCESS file yet"},
		"current is unlisted":  {nil, "65", nil, []string{"7"}, ""},
		"one that is not read": {[]string{"7"}, "5", nil, []string{"6"}, "7: there is no _SUCCESS file yet"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for v := range versions {
				f.put("fruit", v, 1, "fig")
			}
			for _, v := range test.unfinished {
				f.remove("fruit", v, "_SUCCESS")
			}
			n, err := New(Options{Source: &selective{f.source, versions}, Loads: f.launcher(), Store: new(store.Store), Listener: deaf{},
				Reloadable: Reloadable{DB: func(string) DB { return DB{Load: load.Options{RequireSuccess: true}} }}})
			expect.NoError(t, err)
			d := newDB(t.Context(), n.shared, "fruit")
			defer d.bg.cancel()
			known := map[string]content.Input{}
			for _, name := range test.exist {
				known[name] = content.Input{Name: name}
			}
			l, err := d.lister.existing(t.Context(), discovery.Question{Served: content.Input{Name: test.current}, Active: test.current != "", Known: known})
			expect.NoError(t, err)
			if diff := cmp.Diff(test.want, namesOf(l.Inputs)); diff != "" || l.Unfinished != test.why {
				t.Errorf("unfinished %q, want %q; found:\n%s", l.Unfinished, test.why, diff)
			}
		})
	}
}

// A selective source cannot list the files of some versions.
type selective struct {
	*testSource
	files map[string]error
}

func (s *selective) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if err := s.files[version]; err != nil {
		return source.Contents{}, &fs.PathError{Op: "list", Path: version, Err: err}
	}
	return s.testSource.Contents(ctx, db, version)
}

// A dying source goes away when a version is looked at.
type dying struct{ *testSource }

func (s dying) Contents(context.Context, string, string) (source.Contents, error) {
	s.down.Store(true)
	return source.Contents{}, errDown
}

// TestListingFailsAsAWhole: if the source is away, nothing is known. If a single
// version cannot be looked at, it is not known whether that is complete, and it is
// looked at again. One that is at fault itself is listed: loading it will report
// what is wrong.
func TestListingFailsAsAWhole(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	for name, test := range map[string]struct {
		src      source.Source
		versions []string
		unknown  []string
		want     error
	}{
		"the version, for a moment": {&selective{f.source, map[string]error{"1": errDown}}, nil, []string{"1"}, nil},
		"the version, for good":     {&selective{f.source, map[string]error{"1": source.Fault(errDown)}}, []string{"1"}, nil, nil},
		"the source":                {dying{f.source}, nil, nil, errDown},
	} {
		f.source.down.Store(false)
		n, err := New(Options{Source: test.src, Loads: f.launcher(), Store: new(store.Store), Listener: deaf{}})
		expect.NoError(t, err)
		d := newDB(t.Context(), n.shared, "fruit")
		defer d.bg.cancel()
		l, err := d.lister.existing(t.Context(), discovery.Question{})
		if !errors.Is(err, test.want) || !slices.Equal(namesOf(l.Inputs), test.versions) || !slices.Equal(l.Unknown, test.unknown) || l.Next.IsZero() == (test.unknown != nil) {
			t.Errorf("%s, cannot be read: %q exist, %q may, again at %v, %v", name, namesOf(l.Inputs), l.Unknown, l.Next, err)
		}
	}
}

// A slowSource takes its time to say what versions there were when it was
// asked.
type slowSource struct{ *testSource }

func (s slowSource) ReadDir(ctx context.Context, db string) (source.Entries, error) {
	names, err := s.testSource.ReadDir(ctx, db)
	if db == "" {
		return names, err
	}
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
		err = ctx.Err()
	}
	return names, err
}

// TestRefreshDuringListing: a refresh that comes while the versions are being
// listed is not lost, as they may have changed since.
func TestRefreshDuringListing(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Source = slowSource{f.source} })
		n.Refresh()
		time.Sleep(5 * time.Second)
		f.put("fruit", "2", 1, fruit...)
		n.Refresh()
		time.Sleep(time.Minute)
		n.expectCurrent(t, "fruit", "2")
	})
}

// A mute source lists databases and hangs after that.
type mute struct{ *testSource }

func (s mute) ReadDir(ctx context.Context, db string) (source.Entries, error) {
	if db == "" {
		return s.testSource.ReadDir(ctx, db)
	}
	<-ctx.Done()
	return source.Entries{}, ctx.Err()
}

// TestManyDatabasesOfAMuteSource: however many there are, they do not wait for one
// another, and what is on the disk is served meanwhile.
func TestManyDatabasesOfAMuteSource(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	for i := range 3*maxListings + 1 {
		expect.NoError(t, os.Mkdir(filepath.Join(f.root, fmt.Sprintf("db%d", i)), 0o755))
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		n := f.follow(t, func(o *Options) { o.Source = mute{f.source} })
		if took := time.Since(began); took != 0 || n.current("fruit") != "1" {
			t.Errorf("after %v it serves %q", took, n.current("fruit"))
		}
		time.Sleep(startTimeout)
		synctest.Wait()
		for name, d := range *n.follower.catalog.Load() {
			if !n.health.IsFailing(name) {
				t.Errorf("%s is still being listed: %+v", d.name, d.view.Load())
			}
		}
	})
}

// TestSourceTooSlowForStart: what was served is served at once, and a newer version
// on the disk when the source has had its time. The node is ready then, too.
func TestSourceTooSlowForStart(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "2", 1, fruit...)
	r := f.run()
	r.serves("fruit", "2")
	r.stop()
	expect.NoError(t, os.Rename(filepath.Join(f.store, "data", "fruit"), filepath.Join(f.store, "aside")))
	f.remove("fruit", "2")
	f.put("fruit", "1", 1, fruit...)
	r = f.run()
	r.serves("fruit", "1")
	r.stop()
	expect.NoError(t, os.Rename(filepath.Join(f.store, "aside", "2"), filepath.Join(f.store, "data", "fruit", "2")))
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		n := f.follow(t, func(o *Options) { o.Source = hanging{f.source} })
		if took := time.Since(began); took != 0 || n.current("fruit") != "1" {
			t.Errorf("after %v it serves %q", took, n.current("fruit"))
		}
		if !n.MayExist([]byte("nuts")) {
			t.Error("it takes a db for missing that the source may have")
		}
		if ok, _ := n.Ready(""); ok {
			t.Error("it is ready before the source has had its time")
		}
		time.Sleep(startTimeout)
		synctest.Wait()
		if ok, reason := n.Ready(""); !ok {
			t.Errorf("it is not ready: %s", reason)
		}
		n.expectCurrent(t, "fruit", "2") // without a source, and has 2
	})
}

// A deafCluster never learns who holds what.
type deafCluster struct{ version.Solo }

func (deafCluster) Follow(ctx context.Context, _ string, _ content.Input) version.Following {
	<-ctx.Done()
	return version.Solo{}
}

// TestStartWithoutViews: looking for who holds the versions that are opened is bounded
// for all of them together.
func TestStartWithoutViews(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	for _, v := range []string{"2", "3", "4"} {
		expect.NoError(t, os.CopyFS(filepath.Join(f.store, "data", "fruit", v), os.DirFS(filepath.Join(f.store, "data", "fruit", "1"))))
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		n := f.follow(t, func(o *Options) { o.Cluster = deafCluster{} })
		if took := time.Since(began); took > followTimeout || n.current("fruit") != "1" {
			t.Errorf("after %v it serves %q", took, n.current("fruit"))
		}
	})
}
