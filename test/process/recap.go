package process

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Recap returns t with a memory: what fails is repeated after the logs of all processes that the test launches, so that it stands
// at the end of what a test says.
func Recap(t testing.TB) testing.TB {
	t.Helper()
	r := &recap{TB: t}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.failures) > 0 {
			t.Logf("in short, %s failed by:\n%s", t.Name(), strings.Join(r.failures, "\n"))
		}
	})
	return r
}

type recap struct {
	testing.TB
	mu       sync.Mutex
	failures []string // at most maxFailures
}

// maxFailures is how many failures are repeated, and maxFailure the length of each, in bytes.
const (
	maxFailures = 5
	maxFailure  = 300
)

func (r *recap) keep(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) < maxFailures {
		r.failures = append(r.failures, what[:min(len(what), maxFailure)])
	}
}

// Error implements testing.TB.
func (r *recap) Error(args ...any) {
	r.Helper()
	r.keep(fmt.Sprint(args...))
	r.TB.Error(args...)
}

// Errorf implements testing.TB.
func (r *recap) Errorf(format string, args ...any) {
	r.Helper()
	r.keep(fmt.Sprintf(format, args...))
	r.TB.Errorf(format, args...)
}

// Fatal implements testing.TB.
func (r *recap) Fatal(args ...any) {
	r.Helper()
	r.keep(fmt.Sprint(args...))
	r.TB.Fatal(args...)
}

// Fatalf implements testing.TB.
func (r *recap) Fatalf(format string, args ...any) {
	r.Helper()
	r.keep(fmt.Sprintf(format, args...))
	r.TB.Fatalf(format, args...)
}
