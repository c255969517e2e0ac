package source_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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
