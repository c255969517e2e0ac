// Package demo is the run of sequins demo: it writes two versions of a database as a nightly job would, has a node serve
// the first and switch to the second, and checks every answer meanwhile. It owns the data, the client and what is
// printed. The command of cmd/sequins starts the node; the tests there use the data.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"sequins/internal/sleep"
)

// Demo is one run of the demo.
type Demo struct {
	Source string        // directory that the versions are written to
	Pause  time.Duration // time to serve the first version before the second is published
	Out    io.Writer
	// Open returns a node for the source, and its URL.
	Open func(context.Context) (n Node, base string, err error)
}

// Node is a node that serves the source while it runs.
type Node interface {
	Run(context.Context) error
	// Refresh makes the node look at its source.
	Refresh()
}

// Run runs the demo, and the node until the context ends.
func (d *Demo) Run(ctx context.Context) error {
	if err := d.write(First); err != nil {
		return err
	}
	n, base, err := d.Open(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.Run(ctx) })
	g.Go(func() error {
		if err := d.show(ctx, n, base); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	return g.Wait()
}

// show runs the demo against the node and prints its progress.
func (d *Demo) show(ctx context.Context, n Node, base string) error {
	c := newClient(base)
	defer c.close()
	if err := c.wait(ctx, First); err != nil {
		return err
	}
	d.printf("serving version %s; try, in another terminal:\n%s", First, commands(base))
	d.printf("in %v there will be a second version", d.Pause)
	if err := sleep.For(ctx, d.Pause); err != nil {
		return err
	}
	if err := d.upgrade(ctx, n, c); err != nil {
		return err
	}
	d.printf("go on as you like; prices and stock have changed. ^C ends this and removes everything")
	return nil
}

// upgrade writes the second version and makes requests until all answers come from it.
func (d *Demo) upgrade(ctx context.Context, n Node, c *client) error {
	d.printf("requesting random keys from now on, as fast as they are answered, and checking each answer")
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.watch(ctx) })
	g.Go(func() error {
		if err := d.write(Second); err != nil {
			return err
		}
		d.printf("telling sequins to look at its source, as SIGHUP does")
		n.Refresh()
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	d.printf("upgraded: %d answers from %s, then %d from %s; none failed, none was wrong, none went back",
		c.answers[First], First, c.answers[Second], Second)
	return nil
}

func (d *Demo) write(version string) error {
	records, err := Write(d.Source, version)
	if err != nil {
		return err
	}
	d.printf("wrote version %s of %s: %d products in %d SequenceFiles, in %s",
		version, DB, records, files, filepath.Join(d.Source, DB, version))
	return nil
}

// printf prints a line with the time. Errors are ignored.
func (d *Demo) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// commands returns commands to try. The first key is in both versions.
func commands(base string) string {
	return fmt.Sprintf(`
    curl %[1]s/%[2]s/red-wool-scarf
    curl -i %[1]s/%[2]s/blue-oak-chair
    curl -i %[1]s/%[2]s/no-such-product
    curl %[1]s/%[2]s
    curl %[1]s/healthz
    sequins scan %[1]s %[2]s --prefix red-
    sequins top %[1]s
    open %[1]s/ in a browser
`, base, DB)
}
