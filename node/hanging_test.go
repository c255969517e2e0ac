package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/sleep"
	"sequins/source"
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

// An impatientSource answers no listing before its context ends, or, if it has a patience, before a connection of its own has timed out.
type impatientSource struct {
	source.Source
	patience time.Duration
}

func (s impatientSource) ReadDir(ctx context.Context, _ string) (source.Entries, error) {
	if s.patience > 0 {
		return source.Entries{}, errors.Join(sleep.For(ctx, s.patience), fmt.Errorf("dial: %w", context.DeadlineExceeded))
	}
	<-ctx.Done()
	return source.Entries{}, ctx.Err()
}

// Only an error of a listing whose time is over says how long that was.
func TestListingOutOfTime(t *testing.T) {
	for _, c := range []struct {
		patience time.Duration
		want     bool
	}{{0, true}, {time.Second, false}} {
		f := newFixture(t)
		synctest.Test(t, func(t *testing.T) {
			n := f.follow(t, func(o *Options) { o.Source = impatientSource{f.source, c.patience} })
			time.Sleep(startTimeout + time.Second)
			if said := n.Status().SourceError; said == "" || strings.Contains(said, "not listed within") != c.want {
				t.Errorf("patience %v: %q", c.patience, said)
			}
		})
	}
}
