package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/load"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version/discovery"
)

func always(d *DB) { d.AutoSuccess = true }

// unmarked writes a version without a marker.
func (f *fixture) unmarked(db, version string, keys ...string) {
	f.t.Helper()
	f.put(db, version, 1, keys...)
	f.remove(db, version, "_SUCCESS")
}

// lister returns a db that lists and does nothing else.
func (f *fixture) db(name string, r Reloadable) *db {
	f.t.Helper()
	local, err := store.Open(f.t.TempDir())
	expect.NoError(f.t, err)
	f.t.Cleanup(func() { expect.NoError(f.t, local.Close()) })
	n, err := New(Options{Source: f.source, Loads: f.launcher(), Store: local, Listener: deaf{}, Reloadable: r})
	expect.NoError(f.t, err)
	d := newDB(f.t.Context(), n.shared, name)
	f.t.Cleanup(d.bg.cancel)
	return d
}

// TestAutoSuccess: with "auto" a version without _SUCCESS does not exist yet if
// another version of its db has one.
func TestAutoSuccess(t *testing.T) {
	f := newFixture(t)
	f.unmarked("plain", "1", "fig")
	f.unmarked("plain", "2", "fig")
	f.put("marked", "1", 1, "fig")
	f.unmarked("marked", "2", "fig")
	r := Reloadable{DB: func(string) DB { return DB{AutoSuccess: true} }}
	plain := f.db("plain", r)
	if l, err := plain.lister.existing(t.Context(), discovery.Question{}); cmp.Diff([]string{"1", "2"}, namesOf(l.Inputs)) != "" {
		t.Errorf("without any marker: %q, %q, %v", namesOf(l.Inputs), l.Unfinished, err)
	}
	d := f.db("marked", r)
	l, err := d.lister.existing(t.Context(), discovery.Question{})
	if want := "2: there is no _SUCCESS file yet"; cmp.Diff([]string{"1"}, namesOf(l.Inputs)) != "" || l.Unfinished != want {
		t.Errorf("one has it: %q, %q, %v", namesOf(l.Inputs), l.Unfinished, err)
	}
	if !d.loadOptions().RequireSuccess || plain.loadOptions().RequireSuccess {
		t.Error("loads do not know whether _SUCCESS is required")
	}
	f.remove("marked", "1") // it is known from now on
	if l, err := d.lister.existing(t.Context(), discovery.Question{}); len(namesOf(l.Inputs)) > 0 || !strings.HasPrefix(l.Unfinished, "2: there is no _SUCCESS") {
		t.Errorf("the other is gone: %q, %q, %v", namesOf(l.Inputs), l.Unfinished, err)
	}
}

// TestAutoSuccessOfAnOlderVersion: the version with _SUCCESS need not be one
// that is looked at.
func TestAutoSuccessOfAnOlderVersion(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	f.unmarked("fruit", "2", "fig")
	l, err := f.db("fruit", Reloadable{DB: func(string) DB { return DB{AutoSuccess: true} }}).lister.existing(t.Context(), discovery.Question{Served: content.Input{Name: "1"}, Active: true})
	if len(namesOf(l.Inputs)) > 0 || !strings.Contains(l.Unfinished, "there is no _SUCCESS") {
		t.Errorf("%q, %q, %v", namesOf(l.Inputs), l.Unfinished, err)
	}
}

// TestSettle follows a version without a marker over several looks.
func TestSettle(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	f.put("fruit", "0", 1, "fig")
	expect.NoError(t, os.WriteFile(filepath.Join(f.root, "fruit/0/_SUCCESS"), []byte(`{"filenames": ["/fruit/0/part-r-00000"]}`), 0o644))
	const settle = time.Hour
	d := f.db("fruit", Reloadable{Settle: settle})
	synctest.Test(t, func(t *testing.T) {
		q, in := discovery.Question{}, content.Input{}
		check := func(what string, taken, again bool) {
			t.Helper()
			l, err := d.lister.existing(t.Context(), q)
			expect.NoError(t, err)
			want := []string{"0"}
			if taken {
				want = append(want, "1")
			}
			if cmp.Diff(want, namesOf(l.Inputs)) != "" || l.Next.IsZero() == again {
				t.Errorf("%s: %q, %q, again at %v", what, namesOf(l.Inputs), l.Unfinished, l.Next)
			}
			q.Last = l
			if len(l.Inputs) > 1 {
				in = l.Inputs[1]
			}
		}
		check("the first look", false, true)
		time.Sleep(settle / 2)
		check("too early", false, true)
		f.putFile("fruit/1/part-r-00001", "1", "plum")
		time.Sleep(settle)
		check("a file more", false, true)
		time.Sleep(settle)
		check("the same", true, false)
		check("and again", true, false)
		now := time.Now().Add(time.Minute)
		expect.NoError(t, os.Chtimes(filepath.Join(f.root, "fruit/1/part-r-00001"), now, now))
		check("touched", false, true)
		q.States = map[content.Input]discovery.State{in: {Settled: true}}
		check("taken before", true, false)
	})
}

// A lateSource fails the looks at version 3, each after a while, and counts them.
type lateSource struct {
	*testSource
	takes atomic.Int64
	looks atomic.Int32
}

func (s *lateSource) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if version != "3" {
		return s.testSource.Contents(ctx, db, version)
	}
	s.looks.Add(1)
	return source.Contents{}, errors.Join(errDown, sleep.For(ctx, time.Duration(s.takes.Load())))
}

// TestSettledBesideAFault: a version is taken after settle, whatever is wrong with a newer one: neither do the pauses
// after failed looks at that one delay it, nor the time that they take.
func TestSettledBesideAFault(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	synctest.Test(t, func(t *testing.T) {
		src := &lateSource{testSource: f.source}
		src.takes.Store(int64(15 * time.Second))
		n := f.follow(t, func(o *Options) { o.Source, o.Settle = src, 30*time.Second })
		time.Sleep(time.Minute)
		set := n.Set([]byte("fruit"))
		expect.NoError(t, os.Mkdir(filepath.Join(f.root, "fruit", "3"), 0o755))
		n.Refresh()
		time.Sleep(time.Hour) // the looks at 3 are far apart now
		f.unmarked("fruit", "2", "fig")
		n.Refresh()
		before := src.looks.Load()
		time.Sleep(76 * time.Second) // a look that was under way, the look of the refresh, settle, and a look that falls due meanwhile
		if set.Current().Name != "2" {
			t.Errorf("current is %q: %s", set.Current().Name, (*n.follower.catalog.Load())["fruit"].view.Load().unfinished)
		}
		after := src.looks.Load()
		if after > before+3 {
			t.Errorf("%d looks at the version that fails", after-before)
		}
		time.Sleep(2 * maxBackoff)
		if src.looks.Load() == after {
			t.Error("the version that fails is not looked at any more")
		}
		if w := strings.Join(n.Status().Warnings, "\n"); !strings.Contains(w, "version 3 of fruit cannot be looked at") {
			t.Errorf("warnings: %s", w)
		}
	})
}

// TestSettleBeginsWithTheLook: what a listing does before it looks at a version is no time for which that has stayed
// the same.
func TestSettleBeginsWithTheLook(t *testing.T) {
	f := newFixture(t)
	expect.NoError(t, os.MkdirAll(filepath.Join(f.root, "fruit", "3"), 0o755))
	synctest.Test(t, func(t *testing.T) {
		src := &lateSource{testSource: f.source}
		n := f.follow(t, func(o *Options) { o.Source, o.Settle = src, 10*time.Second })
		src.takes.Store(int64(15 * time.Second))
		f.unmarked("fruit", "2", "fig")
		n.Refresh()
		synctest.Wait()
		src.takes.Store(0)
		time.Sleep(16 * time.Second)
		set := n.Set([]byte("fruit"))
		if set.Current().Name != "" {
			t.Error("it was served at once after the first look")
		}
		time.Sleep(10 * time.Second)
		n.expectCurrent(t, "fruit", "2")
	})
}

// A tardySource takes two seconds to look at a version.
type tardySource struct{ *testSource }

func (s tardySource) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if err := sleep.For(ctx, 2*time.Second); err != nil {
		return source.Contents{}, err
	}
	return s.testSource.Contents(ctx, db, version)
}

// TestServedIsListed: however many versions are newer than the one that was served before a restart, it is listed.
func TestServedIsListed(t *testing.T) {
	f := newFixture(t)
	for i := range 7 {
		f.put("fruit", fmt.Sprint(i), 1, "fig")
	}
	l, err := f.db("fruit", Reloadable{}).lister.existing(t.Context(), discovery.Question{Served: content.Input{Name: "1"}})
	if diff := cmp.Diff([]string{"1", "4", "5", "6"}, namesOf(l.Inputs)); diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}

// TestSettledWithoutRefresh: a node that lists its source only when told to
// looks again by itself.
func TestSettledWithoutRefresh(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	n := f.run(func(o *Options) { o.Settle = 20 * time.Millisecond; o.each(always) })
	n.serves("fruit", "1")
	f.unmarked("fruit", "2", "fig", "plum")
	n.Refresh()
	n.serves("fruit", "2")
	if a := n.get("/fruit/plum"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

// TestWrittenFileByFile: a version whose files come one after the other is not
// loaded before they all are there, however often the node looks.
func TestWrittenFileByFile(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Settle, o.RefreshPeriod = 3*time.Second, time.Second })
		for i := range 5 {
			time.Sleep(2900 * time.Millisecond)
			if set := n.Set([]byte("fruit")); set != nil && set.Current().Name != "" {
				t.Fatalf("served after %d files", i+1)
			}
			f.putFile(fmt.Sprintf("fruit/1/part-r-%05d", i+1), "1", "plum")
		}
		time.Sleep(10 * time.Second)
		n.expectCurrent(t, "fruit", "1")
	})
}

// TestBrokenVersionsBlockNobody: whatever is wrong with some versions, good ones
// are served, and the fault is shown.
func TestBrokenVersionsBlockNobody(t *testing.T) {
	tests := map[string]struct {
		make func(dir string) error
		says string
	}{
		"_SUCCESS is a directory": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "_SUCCESS"), 0o755) }, "is a directory"},
		"_SUCCESS is a pipe":      {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "_SUCCESS"), 0o644) }, "not a regular file"},
		"_SUCCESS is a loop":      {func(dir string) error { return os.Symlink("_SUCCESS", filepath.Join(dir, "_SUCCESS")) }, "too many levels"},
		"a file is a pipe":        {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "part-1"), 0o644) }, "not a regular file"},
		"a file is a link":        {func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "part-1")) }, "dangling symbolic link"},
		"a table of Delta Lake":   {func(dir string) error { return os.Mkdir(filepath.Join(dir, "_delta_log"), 0o755) }, "Delta Lake"},
		"only directories": {func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "part-r-00000"), filepath.Join(dir, "_SUCCESS")), os.Mkdir(filepath.Join(dir, "x"), 0o755))
		}, "only directories (x)"},
		"a commit that is broken": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "_committed_1"), []byte("{}"), 0o644) }, "_committed_1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for _, version := range []string{"1", "5", "6", "7"} {
				f.unmarked("fruit", version, "fig")
			}
			f.put("fruit", "3", 1, "fig")
			for _, version := range []string{"1", "5", "6", "7"} {
				expect.NoError(t, test.make(filepath.Join(f.root, "fruit", version)))
			}
			f.put("other", "1", 1, "fig")
			n := f.run(func(o *Options) { o.each(always) })
			n.serves("fruit", "3")
			n.serves("other", "1")
			n.eventually("the newest is in ERROR", func() bool { return n.onNode("fruit", "7").State == "ERROR" })
			if reason := n.onNode("fruit", "7").Error; !strings.Contains(reason, test.says) {
				t.Errorf("%q, want %q", reason, test.says)
			}
			if r := n.health.Report(); r.Err != nil {
				t.Errorf("the source is reported as unreachable: %v", r.Err)
			}
		})
	}
}

// TestLeftOutIsShown: what is left out of a version is in the status.
func TestLeftOutIsShown(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	expect.NoError(t, os.Mkdir(filepath.Join(f.root, "fruit/1/extra"), 0o755))
	n := f.run()
	n.serves("fruit", "1")
	for range 2 {
		if w := strings.Join(n.Status().Warnings, "\n"); !strings.Contains(w, "of version 1 of fruit, files or directories are left out (extra/)") {
			t.Errorf("warnings: %s", w)
		}
		refreshed := n.health.Report().Refreshed
		n.Refresh()
		n.eventually("it has looked again", func() bool { return n.health.Report().Refreshed.After(refreshed) })
	}
}

// A faultySource fails some calls of the node, not of load processes.
type faultySource struct {
	*testSource
	contents atomic.Int32 // how many calls of Contents for version 2 fail
	success  atomic.Int32 // how many calls of Open for _SUCCESS of version 1 fail
	lists    atomic.Int32 // how many listings of the versions of fruit fail
}

func (s *faultySource) ReadDir(ctx context.Context, dir string) (source.Entries, error) {
	if dir == "fruit" && s.lists.Add(-1) >= 0 {
		return source.Entries{}, errDown
	}
	return s.testSource.ReadDir(ctx, dir)
}

func (s *faultySource) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if version == "2" && s.contents.Add(-1) >= 0 {
		return source.Contents{}, errDown
	}
	return s.testSource.Contents(ctx, db, version)
}

func (s *faultySource) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if version == "1" && file.Name == source.SuccessFile && s.success.Add(-1) >= 0 {
		return nil, errDown
	}
	return s.testSource.Open(ctx, db, version, file, o)
}

// staysOn waits until a version has been looked at and left for later, as a sentence
// of the status says, and checks that the node has not switched to it.
func (r *running) staysOn(db, version, why string) {
	r.f.t.Helper()
	r.eventually("the node has looked: "+why, func() bool {
		r.Refresh()
		return strings.Contains((*r.follower.catalog.Load())[db].view.Load().unfinished, why)
	})
	if got := r.current(db); got != version {
		r.f.t.Errorf("version %s is active, although a later one was left for later: %s", got, why)
	}
}

// TestFailedLookIsNoProof: one look at a version that fails, as a request to S3 or HDFS may, does not make it complete:
// neither where _SUCCESS is required, as a sibling has it, nor where the version has to settle.
func TestFailedLookIsNoProof(t *testing.T) {
	for name, test := range map[string]struct {
		put func(*fixture)
		why string
	}{
		"a sibling has _SUCCESS": {func(f *fixture) { f.put("fruit", "1", 1, "fig", "plum") }, "there is no _SUCCESS"},
		"none has":               {func(f *fixture) { f.unmarked("fruit", "1", "fig", "plum") }, "have not stayed the same"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.put(f)
			n := f.run(func(o *Options) { o.Settle = time.Millisecond; o.each(always) })
			n.serves("fruit", "1")
			n.stop() // that version 1 has _SUCCESS is remembered for as long as the process lives
			src := &faultySource{testSource: f.source}
			src.contents.Store(1)
			f.unmarked("fruit", "2", "fig") // a job is writing it
			n = f.run(func(o *Options) { o.Source, o.Settle = src, time.Hour; o.each(always) })
			n.serves("fruit", "1")
			n.staysOn("fruit", "1", test.why)
			if f.log.count("cannot be looked at") == 0 {
				t.Error("the failed look is not reported")
			}
		})
	}
}

// TestLookThatFailedIsRepeated: a version that could not be looked at is loaded when it can, without a refresh, and
// it does not keep an older one from being served.
func TestLookThatFailedIsRepeated(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	f.put("fruit", "2", 1, "fig")
	src := &faultySource{testSource: f.source}
	src.contents.Store(1000)
	n := f.run(func(o *Options) { o.Source = src })
	n.serves("fruit", "1")
	if w := strings.Join(n.Status().Warnings, "\n"); !strings.Contains(w, "version 2 of fruit cannot be looked at") {
		t.Errorf("warnings: %s", w)
	}
	src.contents.Store(0)
	n.serves("fruit", "2")
	n.eventually("the warning is gone", func() bool { return len(n.Status().Warnings) == 0 })
}

// TestUnreadableSuccessCounts: that the _SUCCESS of a sibling cannot be read does not mean that there is none.
func TestUnreadableSuccessCounts(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig", "plum")
	n := f.run(func(o *Options) { o.each(always) })
	n.serves("fruit", "1")
	n.stop()
	src := &faultySource{testSource: f.source}
	src.success.Store(1 << 30)
	f.unmarked("fruit", "2", "fig")
	n = f.run(func(o *Options) { o.Source, o.Settle = src, time.Millisecond; o.each(always) }) // version 1 is on the disk, and not looked at
	n.serves("fruit", "1")
	n.staysOn("fruit", "1", "there is no _SUCCESS")
}

// TestUnfinishedHideNobody: however many unfinished versions are newer, a good one is found.
func TestUnfinishedHideNobody(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "0", 1, "fig")
	for i := range 200 {
		expect.NoError(t, os.MkdirAll(filepath.Join(f.root, "fruit", fmt.Sprintf("1%03d", i), "_temporary"), 0o755))
	}
	if l, err := f.db("fruit", Reloadable{}).lister.existing(t.Context(), discovery.Question{}); !slices.Equal(namesOf(l.Inputs), []string{"0"}) {
		t.Errorf("found %q, %q unknown, %v", namesOf(l.Inputs), l.Unknown, err)
	}
}

// TestLoadThatHasBegunIsNoProof: a version without a marker, of which a load had begun before a restart, has to settle
// again if its job has added a file since. If it has not, the load goes on at once.
func TestLoadThatHasBegunIsNoProof(t *testing.T) {
	for _, changed := range []bool{true, false} {
		f := newFixture(t)
		f.unmarked("fruit", "1", "fig")
		n := f.run(func(o *Options) { o.Settle = time.Millisecond; o.each(always) })
		n.serves("fruit", "1")
		settle := Reloadable{Settle: time.Millisecond, DB: func(string) DB {
			return DB{AutoSuccess: true, Load: load.Options{Throttle: time.Minute}}
		}}
		n.Apply(settle)
		f.unmarked("fruit", "2", "fig", "date")
		n.Refresh()
		n.eventually("a load of 2 has begun", func() bool {
			_, err := os.Stat(filepath.Join(f.dir("fruit", "2"), "MANIFEST.json"))
			return err == nil
		})
		n.stop()
		if changed {
			f.putFile("fruit/2/part-r-00001", "2", "grape")
		}
		n = f.run(func(o *Options) { o.Settle = time.Hour; o.each(always) })
		if changed {
			n.staysOn("fruit", "1", "have not stayed the same")
		} else {
			n.serves("fruit", "2")
		}
		n.stop()
	}
}
