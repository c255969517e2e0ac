package node

import (
	"context"
	"errors"
	"io"
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

// A largeSource counts what is read of its files.
type largeSource struct {
	source.Source
	read *int
}

func (s largeSource) Open(context.Context, string, string, source.File, source.ReadOptions) (io.ReadCloser, error) {
	return s, nil
}

func (s largeSource) Read(p []byte) (int, error) {
	*s.read += len(p)
	return len(p), nil
}

func (s largeSource) Close() error { return nil }

// TestExistenceReadsNothing: a file need not be read to find out whether it is there.
func TestExistenceReadsNothing(t *testing.T) {
	read := 0
	b := newBoundedSource(largeSource{newFixture(t).source, &read})
	if ok, err := source.Exists(t.Context(), b, "fruit", "1", "part-0"); !ok || err != nil || read > 0 {
		t.Errorf("it is there: %t, %v; %d bytes were read", ok, err, read)
	}
}
