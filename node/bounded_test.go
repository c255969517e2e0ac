package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sequins/source"
)

// A deadSource hangs in every listing until it is let go, whatever the context says, as system calls do.
type deadSource struct {
	source.Source
	release chan struct{}
}

func (s deadSource) Databases(context.Context) ([]string, error) {
	<-s.release
	return []string{"fruit"}, nil
}

func TestBoundedSource(t *testing.T) {
	f := newFixture(t)
	dead := deadSource{f.source, make(chan struct{})}
	b := newBoundedSource(dead)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Databases(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("while it hangs: %v", err)
	}
	if _, err := b.Databases(t.Context()); err == nil || !strings.Contains(err.Error(), "an earlier attempt") {
		t.Errorf("a second attempt: %v", err)
	}
	close(dead.release)
	for deadline := time.Now().Add(patience); ; {
		names, err := b.Databases(t.Context())
		if err == nil && len(names) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("when it answers again: %q, %v", names, err)
		}
	}
}

// A node serves what it has although its source hangs, and ends when it is told to.
func TestSourceThatHangs(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()

	dead := deadSource{f.source, make(chan struct{})}
	defer close(dead.release)
	r = f.run(func(o *Options) { o.Source = dead })
	r.eventually("it serves", func() bool { return r.get("/fruit/fig").body == "fig of 1" })
	r.Refresh()
	r.stop()
}
