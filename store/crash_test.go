package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/test/expect"
	"sequins/test/faultfs"
)

// storeOp is something done to a store like that of filled, and the states of the store, as
// describe shows them, that there may be if it is interrupted; the last is the one to arrive at.
type storeOp struct {
	name   string
	do     func(s *Store) error
	states []string
}

// undoable says that the operation, done a second time, may find nothing to do any more, while what
// the first had done can still be undone by a power loss.
func (op storeOp) undoable() bool {
	return strings.HasPrefix(op.name, "remove") || op.name == "set aside" || strings.HasPrefix(op.name, "served")
}

const filledState = "db/v A [0 1]"

func withDir(do func(d *Dir) error) func(*Store) error {
	return func(s *Store) error {
		d, err := s.Dir("db", input("v"))
		if err != nil {
			return err
		}
		return do(d)
	}
}

func create(db, version, name string) func(*Store) error {
	return func(s *Store) error {
		_, err := s.Create(db, planOf(version, name))
		return err
	}
}

// serve makes a version the served one of db, or none if it is "".
func serve(version string) func(*Store) error {
	return func(s *Store) error {
		state, err := s.State("db")
		if err != nil {
			return err
		}
		state.Served = content.Content{}
		if version != "" {
			state.Served = planOf(version, "A").Content()
		}
		return s.SetState("db", state)
	}
}

var storeOps = []storeOp{
	{"create", create("db", "v2", "B"), []string{filledState, filledState + ", db/v2 B []"}},
	{"create in a new db", create("a", "v", "B"), []string{filledState, "a/v B [], " + filledState}},
	{"create again", create("db", "v", "A"), []string{filledState}},
	{"create by another plan", create("db", "v", "B"), []string{filledState, "", "db/v B []"}},
	{"publish", withDir(func(d *Dir) error { return addBlock(d, 2) }), []string{filledState, "db/v A [0 1 2]"}},
	{"publish again", withDir(func(d *Dir) error { return addBlock(d, 1) }), []string{filledState}},
	{"discard", withDir(func(d *Dir) error {
		stage := d.Staging()
		f, err := stage.CreateBlock(2)
		if err == nil {
			err = stage.DiscardBlock(f)
		}
		return err
	}), []string{filledState}},
	{"set aside", withDir(func(d *Dir) error {
		if err := d.SetAside(0); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // the second time
	}), []string{filledState, "db/v A [1]"}},
	{"remove", func(s *Store) error { return s.Remove("db", input("v")) }, []string{filledState, ""}},
	{"remove block", withDir(func(d *Dir) error {
		if err := d.RemoveBlock(0); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // the second time
	}), []string{filledState, "db/v A [1]"}},
	{"served", serve("v"), []string{filledState, filledState + ", served v"}},
	{"served by others", func(s *Store) error {
		if err := s.Remove("db", input("v")); err != nil {
			return err
		}
		return serve("w")(s)
	}, []string{filledState, "", "served w"}},
	{"served no more", func(s *Store) error {
		if err := serve("v")(s); err != nil {
			return err
		}
		return serve("")(s)
	}, []string{filledState, filledState + ", served v", filledState}},
}

// checkState fails the test if the store is in none of these states.
func checkState(t *testing.T, s *Store, states ...string) {
	t.Helper()
	if got := strings.Join(describe(t, s), ", "); !slices.Contains(states, got) {
		t.Errorf("the store has %q, want one of %q", got, states)
	}
}

// checkTidy fails the test if there are files that an opened store does not have.
func checkTidy(t *testing.T, fs fsys.FS, dir string) {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	expect.NoError(t, err)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(name, ".tmp") || strings.Contains(name, "/tmp/") {
			t.Errorf("%s is left over", name)
		}
		if e.IsDir() {
			checkTidy(t, fs, name)
		}
	}
}

// TestStorePowerLoss turns the power off after each system call of each operation, goes through
// all that may be left of what was not fsynced, and does the operation again.
func TestStorePowerLoss(t *testing.T) {
	for _, op := range storeOps {
		t.Run(op.name, func(t *testing.T) {
			last := op.states[len(op.states)-1]
			for n := 0; ; n++ {
				f, s, _ := filled(t)
				f.PowerOffAfter(n)
				err := op.do(s)
				states := op.states
				if err == nil {
					states = []string{last}
				}
				f.PowerOn()
				left := slices.Collect(f.Outcomes(300))
				for _, after := range append(left, f) { // f itself: the process was killed
					interruptOpen(t, after, states)
					s := memStore(t, after)
					checkState(t, s, states...)
					checkTidy(t, after, "/s")
					for left := range after.Outcomes(50) {
						checkState(t, memStore(t, left), states...)
					}
					expect.NoError(t, op.do(s))
					checkState(t, s, last)
					if after != f || !op.undoable() {
						checkState(t, memStore(t, after.Crash(faultfs.Lose)), last)
					}
				}
				if t.Failed() {
					t.Fatalf("power lost after %d calls", n)
				}
				if err == nil {
					break
				}
			}
		})
	}
}

// interruptOpen turns the power off after each system call of opening the store, too.
func interruptOpen(t *testing.T, f *faultfs.FS, states []string) {
	t.Helper()
	for n := 0; ; n++ {
		f := f.Crash(faultfs.Keep)
		f.PowerOffAfter(n)
		_, err := openSwept(f)
		f.PowerOn()
		for left := range f.Outcomes(20) {
			checkState(t, memStore(t, left), states...)
			checkTidy(t, left, "/s")
		}
		if err == nil {
			return
		}
		if !errors.Is(err, faultfs.ErrPowerOff) {
			t.Fatal(err)
		}
	}
}

// TestStoreFailures lets each system call of each operation fail: the error is reported, the store
// that goes on working and the one opened next agree on what there is, and the operation succeeds
// when it is tried again.
func TestStoreFailures(t *testing.T) {
	for _, op := range storeOps {
		t.Run(op.name, func(t *testing.T) {
			last := op.states[len(op.states)-1]
			for n := 1; ; n++ {
				f, s, _ := filled(t)
				before := f.Calls()
				injected := []error{syscall.EIO, syscall.ENOSPC}[n%2]
				f.FailAt(n, injected)
				err := op.do(s)
				if f.Calls()-before < n { // all of its calls have failed, each in its turn
					expect.NoError(t, err)
					return
				}
				if err != nil {
					expect.Error(t, "the operation", err, injected)
					checkState(t, s, op.states...)
				} else {
					checkState(t, s, last)
				}
				if open := f.OpenFiles(); open != 0 {
					t.Errorf("%d files are open", open)
				}
				checkState(t, memStore(t, f.Crash(faultfs.Keep)), state(t, s))
				expect.NoError(t, op.do(s))
				checkState(t, s, last)
				states := []string{last}
				if err != nil && op.undoable() {
					states = op.states
				}
				checkState(t, memStore(t, f.Crash(faultfs.Lose)), states...)
				if t.Failed() {
					t.Fatalf("call %d failed with %v", n, injected)
				}
			}
		})
	}
}

// state is describe in one line.
func state(t *testing.T, s *Store) string { return strings.Join(describe(t, s), ", ") }

// TestOpenFailures lets each system call of opening a store with leftovers fail.
func TestOpenFailures(t *testing.T) {
	for n := 1; ; n++ {
		f, _, d := filled(t)
		_, err := d.Staging().CreateBlock(2)
		expect.NoError(t, err)
		write(t, f, d.Staging().Temp()+"/run-1.tmp", "x")
		expect.NoError(t, f.MkdirAll("/s/data/db/w/0123456789abcdef"))
		write(t, f, "/s/data/db/w/0123456789abcdef/00000.block", "x")
		expect.NoError(t, f.MkdirAll("/s/data/db2/v/0123456789abcdef/tmp"))
		before := f.Calls()
		f.FailAt(n, syscall.EIO)
		_, err = openSwept(f)
		if f.Calls()-before < n {
			expect.NoError(t, err)
			return
		}
		expect.Error(t, fmt.Sprintf("call %d of opening", n), err, syscall.EIO)
		checkState(t, memStore(t, f), filledState)
		checkTidy(t, f, "/s")
	}
}

// TestStoreWalk goes through random operations, power losses and kills: every block is always whole
// and of its version's plan, and what is done stays done.
func TestStoreWalk(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := faultfs.New()
		s := memStore(t, f)
		settled := true // nothing was interrupted since the last power loss
		for range 30 {
			f.PowerOffAfter(r.IntN(30))
			err := randomStoreOp(r, s)
			f.PowerOn()
			settled = settled && err == nil
			before, crash := state(t, s), r.IntN(3) == 0
			if crash {
				f = f.Crash(faultfs.Seeded(r.Uint64()))
			}
			if crash || err != nil || r.IntN(2) == 0 { // the last two: the process was killed
				s = memStore(t, f)
			}
			if after := state(t, s); settled && after != before {
				t.Errorf("%s became %s", before, after)
			}
			settled = settled || crash
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// randomStoreOp does something to a random version of few.
func randomStoreOp(r *rand.Rand, s *Store) error {
	db, v := fmt.Sprint("db", r.IntN(2)), fmt.Sprint("v", r.IntN(2))
	d, err := s.Dir(db, input(v))
	op := r.IntN(8)
	switch {
	case op == 0:
		err = s.Remove(db, input(v))
	case err != nil || op == 1:
		_, err = s.Create(db, planOf(v, string(rune('A'+r.IntN(2)))))
	case op == 2:
		err = d.SetAside(r.IntN(3))
	default:
		err = addBlock(d, r.IntN(3))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
