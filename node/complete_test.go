package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/blocks"
)

func always(string) bool { return true }

// unmarked writes a version without a marker.
func (f *fixture) unmarked(db, version string, keys ...string) {
	f.t.Helper()
	f.put(db, version, 1, keys...)
	f.remove(db, version, "_SUCCESS")
}

// lister returns a db that lists and does nothing else.
func (f *fixture) lister(name string, r Reloadable) *db {
	f.t.Helper()
	n, err := New(Options{Source: f.source, Loads: f.launcher(), Store: new(blocks.Store), Listener: deaf{}, Reloadable: r})
	must(f.t, err)
	d := newDB(f.t.Context(), n, name)
	f.t.Cleanup(d.cancel)
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
	r := Reloadable{AutoSuccess: always}
	if l := f.lister("plain", r).existing(t.Context(), question{}); cmp.Diff([]string{"1", "2"}, l.versions) != "" {
		t.Errorf("without any marker: %q, %q, %v", l.versions, l.unfinished, l.err)
	}
	d := f.lister("marked", r)
	l := d.existing(t.Context(), question{})
	if want := "2: there is no _SUCCESS file yet"; cmp.Diff([]string{"1"}, l.versions) != "" || l.unfinished != want {
		t.Errorf("one has it: %q, %q, %v", l.versions, l.unfinished, l.err)
	}
	if !d.node.loadOptions("marked").RequireSuccess || d.node.loadOptions("plain").RequireSuccess {
		t.Error("loads do not know whether _SUCCESS is required")
	}
	f.remove("marked", "1") // it is known from now on
	if l := d.existing(t.Context(), question{}); len(l.versions) > 0 || !strings.HasPrefix(l.unfinished, "2: there is no _SUCCESS") {
		t.Errorf("the other is gone: %q, %q, %v", l.versions, l.unfinished, l.err)
	}
}

// TestAutoSuccessOfAnOlderVersion: the version with _SUCCESS need not be one
// that is looked at.
func TestAutoSuccessOfAnOlderVersion(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	f.unmarked("fruit", "2", "fig")
	l := f.lister("fruit", Reloadable{AutoSuccess: always}).existing(t.Context(), question{current: "1"})
	if len(l.versions) > 0 || !strings.Contains(l.unfinished, "there is no _SUCCESS") {
		t.Errorf("%q, %q, %v", l.versions, l.unfinished, l.err)
	}
}

// TestSettle follows a version without a marker over several looks.
func TestSettle(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	f.put("fruit", "0", 1, "fig")
	const settle = time.Hour
	d := f.lister("fruit", Reloadable{Settle: settle})
	q := question{}
	check := func(what string, taken, again bool) {
		t.Helper()
		l := d.existing(t.Context(), q)
		must(t, l.err)
		want := []string{"0"}
		if taken {
			want = append(want, "1")
		}
		if cmp.Diff(want, l.versions) != "" || l.next.IsZero() == again {
			t.Errorf("%s: %q, %q, again at %v", what, l.versions, l.unfinished, l.next)
		}
		q.last = l
	}
	// age makes the remembered look as old as if time had passed.
	age := func(by time.Duration) {
		old := q.last.looks["1"]
		q.last.looks = map[string]look{"1": {old.fingerprint, old.at.Add(-by)}}
	}
	check("the first look", false, true)
	age(settle / 2)
	check("too early", false, true)
	f.putFile(filepath.Join(f.root, "fruit/1/part-r-00001"), "1", func(string) bool { return true }, []string{"plum"})
	age(settle)
	check("a file more", false, true)
	age(settle)
	check("the same", true, false)
	check("and again", true, false)
	now := time.Now().Add(time.Minute)
	must(t, os.Chtimes(filepath.Join(f.root, "fruit/1/part-r-00001"), now, now))
	check("touched", false, true)
	q.settled = known([]string{"1"})
	check("taken before", true, false)
}

// TestSettledWithoutRefresh: a node that lists its source only when told to
// looks again by itself.
func TestSettledWithoutRefresh(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	n := f.run(func(o *Options) { o.Settle, o.AutoSuccess = 20*time.Millisecond, always })
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
		n, stop := f.follow(func(o *Options) { o.Settle, o.RefreshPeriod = 3*time.Second, time.Second })
		defer stop()
		for i := range 5 {
			time.Sleep(2900 * time.Millisecond)
			if set := n.Set([]byte("fruit")); set != nil && set.Current() != "" {
				t.Fatalf("served after %d files", i+1)
			}
			f.putFile(filepath.Join(f.root, fmt.Sprintf("fruit/1/part-r-%05d", i+1)), "1", func(string) bool { return true }, []string{"plum"})
		}
		time.Sleep(10 * time.Second)
		if got := n.Set([]byte("fruit")).Current(); got != "1" {
			t.Errorf("current is %q", got)
		}
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
		"a wrong ._SUCCESS.crc": {func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "_SUCCESS"), []byte("{}"), 0o644),
				os.WriteFile(filepath.Join(dir, "._SUCCESS.crc"), []byte("crc\x00\x00\x00\x02\x00abcd"), 0o644))
		}, "checksum"},
		"a file is a pipe":      {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "part-1"), 0o644) }, "not a regular file"},
		"a file is a link":      {func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "part-1")) }, "leads nowhere"},
		"a table of Delta Lake": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "_delta_log"), 0o755) }, "Delta Lake"},
		"only directories": {func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "part-r-00000"), filepath.Join(dir, "_SUCCESS")), os.Mkdir(filepath.Join(dir, "x"), 0o755))
		}, "only directories (x)"},
		"a commit that is broken": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "_committed_1"), []byte("{}"), 0o644) }, "_committed_1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, version := range []string{"1", "5", "6", "7"} {
				f.unmarked("fruit", version, "fig")
			}
			f.put("fruit", "3", 1, "fig")
			for _, version := range []string{"1", "5", "6", "7"} {
				must(t, test.make(filepath.Join(f.root, "fruit", version)))
			}
			f.put("other", "1", 1, "fig")
			n := f.run(func(o *Options) { o.AutoSuccess = always })
			n.serves("fruit", "3")
			n.serves("other", "1")
			n.eventually("the newest is in ERROR", func() bool { return n.node("fruit", "7").State == "ERROR" })
			if reason := n.node("fruit", "7").Error; !strings.Contains(reason, test.says) {
				t.Errorf("%q, want %q", reason, test.says)
			}
			if r := n.health.report(); r.err != nil {
				t.Errorf("the source is reported as unreachable: %v", r.err)
			}
		})
	}
}

// TestLeftOutIsShown: what is left out of a version is in the status.
func TestLeftOutIsShown(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	must(t, os.Mkdir(filepath.Join(f.root, "fruit/1/extra"), 0o755))
	n := f.run()
	n.serves("fruit", "1")
	for range 2 {
		if w := strings.Join(n.Status().Warnings, "\n"); !strings.Contains(w, "of version 1 of fruit, files or directories are left out (extra/)") {
			t.Errorf("warnings: %s", w)
		}
		refreshed := n.health.report().refreshed
		n.Refresh()
		n.eventually("it has looked again", func() bool { return n.health.report().refreshed.After(refreshed) })
	}
}
