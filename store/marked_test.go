package store

import (
	"testing"

	"sequins/internal/fsys/faultfs"
	"sequins/test/expect"
)

// That a db has markers is known after power loss, and forgotten with the db.
func TestMarked(t *testing.T) {
	f := faultfs.New()
	marked := func(s *Store) bool {
		t.Helper()
		known, err := s.Marked("db")
		expect.NoError(t, err)
		return known
	}
	s := memStore(t, f)
	if marked(s) {
		t.Error("marked from the beginning")
	}
	expect.NoError(t, s.SetMarked("db"))
	expect.NoError(t, s.SetMarked("db"))
	if marked(memStore(t, f.Crash(faultfs.Lose))) {
		t.Error("it is known of a db without versions")
	}
	_, err := s.Create("db", "v", plan("A"))
	expect.NoError(t, err)
	s = memStore(t, f.Crash(faultfs.Lose))
	if !marked(s) {
		t.Error("power loss has taken it")
	}
	if err := s.ForgetServed("db"); err != nil || marked(s) {
		t.Errorf("the db is gone: %v", err)
	}
}
