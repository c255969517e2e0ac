// Package expect has the checks that tests of several packages share.
package expect

import (
	"errors"
	"testing"
	"time"
)

// patience is how long something may take that has to happen, on a busy machine.
const patience = time.Minute

// NoError ends the test if err is not nil.
func NoError(t testing.TB, err error) {
	if err != nil {
		t.Helper() // costs more than what many tests check in a loop
		t.Fatal(err)
	}
}

// Error fails the test if err does not wrap want; what says which operation should have failed.
func Error(t testing.TB, what string, err, want error) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// Eventually ends the test if a condition, which what describes, does not hold within a minute. It polls every few
// milliseconds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
