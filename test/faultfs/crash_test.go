package faultfs

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/fsys"
	"sequins/test/expect"
)

func read(t *testing.T, f *FS, name string) string {
	t.Helper()
	data, err := fsys.ReadFile(f, name, 1<<20)
	expect.NoError(t, err)
	return string(data)
}

// show formats a file system as "a=content d/ d/b=content".
func show(t *testing.T, f *FS) string {
	t.Helper()
	var parts []string
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := f.ReadDir(dir)
		expect.NoError(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				parts = append(parts, name[1:]+"/")
				walk(name)
			} else {
				parts = append(parts, name[1:]+"="+strings.ReplaceAll(read(t, f, name), "\x00", "0"))
			}
		}
	}
	walk("/")
	return strings.Join(parts, " ")
}

// outcomes returns the distinct states that a power loss may leave.
func outcomes(t *testing.T, f *FS) []string {
	t.Helper()
	set := map[string]bool{}
	for left := range f.Outcomes(100000) {
		set[show(t, left)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// do runs a script of file system calls.
func do(t *testing.T, f *FS, script string) {
	t.Helper()
	for step := range strings.SplitSeq(script, ";") {
		args := append(strings.Fields(step), "", "")
		switch args[0] {
		case "mkdir":
			expect.NoError(t, f.mkdir(args[1]))
		case "write", "writesync":
			w, err := f.Create(args[1])
			expect.NoError(t, err)
			_, err = io.WriteString(w, args[2])
			expect.NoError(t, err)
			if args[0] == "writesync" {
				expect.NoError(t, w.Sync())
			}
			expect.NoError(t, w.Close())
		case "rename":
			expect.NoError(t, f.Rename(args[1], args[2]))
		case "remove":
			expect.NoError(t, f.Remove(args[1]))
		case "syncdir":
			expect.NoError(t, f.SyncDir(args[1]))
		default:
			t.Fatalf("unknown step %q", step)
		}
	}
}

func TestCrashOutcomes(t *testing.T) {
	tests := []struct {
		name, script string
		want         []string
	}{
		{"all durable", "mkdir d; syncdir /; writesync d/a x; syncdir d", []string{"d/ d/a=x"}},
		{"content, no fsync", "write a wxyz; syncdir /", []string{"a=", "a=0000", "a=wx", "a=wxyz"}},
		{"name, no fsync", "writesync a x", []string{"", "a=x"}},
		{"directory, no fsync of its parent", "mkdir d; writesync d/a x; syncdir d", []string{"", "d/ d/a=x"}},
		{"remove", "writesync a x; syncdir /; remove a", []string{"", "a=x"}},
		{"remove, fsynced", "writesync a x; syncdir /; remove a; syncdir /", []string{""}},
		{"rename", "writesync a x; syncdir /; rename a b", []string{"a=x", "b=x"}},
		{"rename over", "writesync a x; writesync b y; syncdir /; rename a b", []string{"a=x b=y", "b=x"}},
		{"rename of a new file", "writesync b y; syncdir /; writesync a x; rename a b",
			[]string{"a=x b=y", "b=x", "b=y"}},
		{"two in one directory, each for itself", "writesync a x; writesync b y", []string{"", "a=x", "a=x b=y", "b=y"}},
		{"made and removed", "writesync a x; remove a", []string{"", "a=x"}},
		{"rename of a directory", "mkdir d; syncdir /; writesync d/a x; syncdir d; rename d e; remove e/a",
			[]string{"d/", "d/ d/a=x", "e/", "e/ e/a=x"}},
		{"into another directory", "mkdir d; writesync a x; syncdir /; rename a d/b",
			[]string{"a=x d/", "a=x d/ d/b=x", "d/ d/b=x"}},
		{"into another directory, new one fsynced", "mkdir d; writesync a x; syncdir /; rename a d/b; syncdir d",
			[]string{"a=x d/ d/b=x", "d/ d/b=x"}},
		{"into another directory, old one fsynced", "mkdir d; writesync a x; syncdir /; rename a d/b; syncdir /",
			[]string{"d/ d/b=x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := New()
			do(t, f, tt.script)
			now := show(t, f)
			if diff := cmp.Diff(tt.want, outcomes(t, f)); diff != "" {
				t.Error(diff)
			}
			if got := show(t, f.Crash(Keep)); got != now {
				t.Errorf("a crash that keeps everything leaves %q, not %q", got, now)
			}
			if got := show(t, f); got != now {
				t.Errorf("crashing changed the file system from %q to %q", now, got)
			}
		})
	}
}

// TestCrashIsDurable: what a crash has kept, a second crash keeps.
func TestCrashIsDurable(t *testing.T) {
	f := New()
	do(t, f, "mkdir d; write d/a abcd; write b x; rename b d/c")
	for seed := range uint64(50) {
		left := f.Crash(Seeded(seed))
		if first, second := show(t, left), show(t, left.Crash(Lose)); first != second {
			t.Errorf("seed %d: %q became %q", seed, first, second)
		}
	}
}

// TestOutcomesLimited: if there are too many outcomes, the worst, the best and some others are returned.
func TestOutcomesLimited(t *testing.T) {
	f := New()
	for i := range 12 {
		do(t, f, fmt.Sprintf("write file%d x", i))
	}
	var got []string
	for left := range f.Outcomes(20) {
		got = append(got, show(t, left))
	}
	if len(got) != 20 || got[0] != "" || got[1] != show(t, f) {
		t.Errorf("%d outcomes, the first two: %.2q", len(got), got)
	}
	slices.Sort(got)
	if n := len(slices.Compact(got)); n < 15 {
		t.Errorf("only %d different outcomes of 20", n)
	}
	for range f.Outcomes(20) { // breaking out of the loop must not panic
		break
	}
}

// TestFailedSync: a successful fsync after a failed one makes nothing durable.
func TestFailedSync(t *testing.T) {
	f := New()
	w, err := f.Create("a")
	expect.NoError(t, err)
	expect.NoError(t, f.SyncDir("/"))
	_, err = io.WriteString(w, "data")
	expect.NoError(t, err)
	f.FailAt(1, syscall.EIO)
	expect.Error(t, "Sync", w.Sync(), syscall.EIO)
	expect.NoError(t, w.Sync())
	expect.NoError(t, w.Close())
	if got := show(t, f.Crash(Lose)); got != "a=" {
		t.Errorf("left: %q", got)
	}
	if got := show(t, f); got != "a=data" {
		t.Errorf("without a crash: %q", got)
	}
}

func TestFailedWrite(t *testing.T) {
	f := New()
	w, err := f.Create("a")
	expect.NoError(t, err)
	f.FailAt(2, syscall.EIO)
	_, err = io.WriteString(w, "0123")
	expect.NoError(t, err)
	n, err := io.WriteString(w, "4567")
	expect.Error(t, "Write", err, syscall.EIO)
	if n != 2 {
		t.Errorf("wrote %d bytes", n)
	}
	expect.NoError(t, w.Close())
	if got := show(t, f); got != "a=012345" {
		t.Errorf("content: %q", got)
	}
}

func TestDiskFull(t *testing.T) {
	f := New()
	f.SetFree(6)
	do(t, f, "write a 0123")
	w, err := f.Create("b")
	expect.NoError(t, err)
	n, err := io.WriteString(w, "4567")
	expect.Error(t, "Write", err, syscall.ENOSPC)
	if n != 2 {
		t.Errorf("wrote %d bytes", n)
	}
	expect.NoError(t, f.Remove("b"))
	_, err = io.WriteString(w, "x")
	expect.Error(t, "Write to a removed file that is open", err, syscall.ENOSPC)
	expect.NoError(t, w.Close())
	do(t, f, "write c 01; write d; rename d a; write e 0123")
	if got := show(t, f); got != "a= c=01 e=0123" {
		t.Errorf("left: %q", got)
	}
}

func TestPowerOff(t *testing.T) {
	f := New()
	w, err := f.Create("a")
	expect.NoError(t, err)
	f.PowerOffAfter(1)
	_, err = io.WriteString(w, "01")
	expect.NoError(t, err)
	before := f.Calls()
	_, err = io.WriteString(w, "23")
	expect.Error(t, "Write", err, ErrPowerOff)
	expect.Error(t, "Sync", w.Sync(), ErrPowerOff)
	expect.Error(t, "Close", w.Close(), ErrPowerOff)
	expect.Error(t, "Remove", f.Remove("a"), ErrPowerOff)
	expect.Error(t, "Rename", f.Rename("a", "b"), ErrPowerOff)
	expect.Error(t, "MkdirAll", f.MkdirAll("d"), ErrPowerOff)
	expect.Error(t, "RemoveAll", f.RemoveAll("a"), ErrPowerOff)
	expect.Error(t, "SyncDir", f.SyncDir("/"), ErrPowerOff)
	_, err = f.Open("a")
	expect.Error(t, "Open", err, ErrPowerOff)
	_, err = f.Create("b")
	expect.Error(t, "Create", err, ErrPowerOff)
	_, err = f.Stat("a")
	expect.Error(t, "Stat", err, ErrPowerOff)
	_, err = f.ReadDir("/")
	expect.Error(t, "ReadDir", err, ErrPowerOff)
	if f.Calls() != before {
		t.Errorf("calls without power were counted")
	}
	if diff := cmp.Diff([]string{"", "a=", "a=0", "a=00", "a=01"}, outcomes(t, f)); diff != "" {
		t.Error(diff)
	}
	f.PowerOn()
	if got := show(t, f); got != "a=01" {
		t.Errorf("a process that was killed left %q", got)
	}
}

func TestAlter(t *testing.T) {
	f := New()
	do(t, f, "writesync a abc; syncdir /")
	expect.NoError(t, f.Alter("a", func(b []byte) []byte { b[1] ^= 3; return b[:2] }))
	if got := show(t, f.Crash(Lose)); got != "a=aa" {
		t.Errorf("altered to %q", got)
	}
	expect.Error(t, "Alter of nothing", f.Alter("b", nil), syscall.ENOENT)
}
