package node

import (
	"context"
	"testing"

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
