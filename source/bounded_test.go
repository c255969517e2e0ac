package source_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sequins/source"
	"sequins/test/expect"
)

// A deadSource hangs in every listing until it is let go, whatever the context says, as system calls do.
type deadSource struct {
	source.Source
	release chan struct{}
}

func (s deadSource) ReadDir(context.Context, string) (source.Entries, error) {
	<-s.release
	return source.Entries{Dirs: []string{"fruit"}}, nil
}

func (s deadSource) Path(db, version string) string { return db + "/" + version }

func TestBoundedSource(t *testing.T) {
	dead := deadSource{release: make(chan struct{})}
	b := source.NewBounded(dead)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Databases(ctx, b); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("while it hangs: %v", err)
	}
	if _, err := source.Databases(t.Context(), b); err == nil || !strings.Contains(err.Error(), "an earlier attempt") {
		t.Errorf("a second attempt: %v", err)
	}
	close(dead.release)
	expect.Eventually(t, "it answers again", func() bool {
		names, err := source.Databases(t.Context(), b)
		return err == nil && len(names) == 1
	})
}

// A call that sees its context end says why it has failed until then, and does not hang.
func TestBoundedCallEnds(t *testing.T) {
	refused := errors.New("connection refused")
	b := source.NewBounded(patientSource{err: refused})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := source.Databases(ctx, b); !errors.Is(err, refused) {
			t.Error(err)
		}
		cancel()
	}
}

// A patientSource tries until the context ends.
type patientSource struct {
	deadSource
	err error
}

func (s patientSource) ReadDir(ctx context.Context, _ string) (source.Entries, error) {
	<-ctx.Done()
	return source.Entries{}, s.err
}
