package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/internal/sleep"
	"sequins/node"
)

func demoCommand() *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Generate a database, serve it, and switch to a new version under load",
		Long: `Generate a database with two versions, as a nightly job would write them. Load
and serve the first, then publish the second and switch to it, while requests
continue and each answer is checked. Serve until ^C.

All files are in a temporary directory, which is removed at the end.`,
		Example: `  sequins demo
  sequins demo --bind 127.0.0.1:8080 --pause 30s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.anyPort = !cmd.Flags().Changed("bind")
			d.out = cmd.OutOrStdout()
			return d.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&d.bind, "bind", "b", "127.0.0.1:9599", "`address` to serve on; without this flag, another port if it is in use")
	cmd.Flags().DurationVar(&d.pause, "pause", 10*time.Second, "time to serve the first version before the second is published")
	return cmd
}

// demo is one run of the demo.
type demo struct {
	bind    string
	anyPort bool // use another port if that of bind is taken
	pause   time.Duration
	out     io.Writer
}

func (d *demo) run(ctx context.Context, stderr io.Writer) error {
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return untilSignal(ctx, log, nil, func(ctx context.Context) (err error) {
		dir, err := os.MkdirTemp("", "sequins-demo-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		return d.in(ctx, dir, log)
	})
}

// in runs the demo in a directory.
func (d *demo) in(ctx context.Context, dir string, log *slog.Logger) error {
	c := config.Default()
	c.Source, c.LocalStore, c.Bind = filepath.Join(dir, "source"), filepath.Join(dir, "store"), d.bind
	c.RequireSuccessFile, c.ContentType = config.RequireTrue, "application/json"
	if err := c.Validate(); err != nil {
		return err
	}
	if err := d.write(c.Source, demoFirst); err != nil {
		return err
	}
	s, err := open(ctx, c, log)
	if d.anyPort && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(d.bind)
		c.Bind = net.JoinHostPort(host, "0")
		s, err = open(ctx, c, log)
	}
	if err != nil {
		return err
	}
	return d.serve(ctx, s, c.Source)
}

// serve runs the node and the demo's output until both have ended.
func (d *demo) serve(ctx context.Context, s *serving, source string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shown := make(chan error, 1)
	go func() {
		err := d.show(ctx, s.node, source, "http://"+s.address)
		if err != nil {
			cancel() // end the node after a failure
		}
		shown <- err
	}()
	err := s.node.Run(ctx)
	cancel()
	if failed := <-shown; !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return err
}

// show runs the demo against the node and prints its progress.
func (d *demo) show(ctx context.Context, n *node.Node, source, base string) error {
	w := newDemoWatch(base)
	defer w.close()
	if err := w.wait(ctx, demoFirst); err != nil {
		return err
	}
	d.printf("serving version %s; try, in another terminal:\n%s", demoFirst, demoCommands(base))
	d.printf("in %v there will be a second version", d.pause)
	if err := sleep.For(ctx, d.pause); err != nil {
		return err
	}
	if err := d.upgrade(ctx, n, source, w); err != nil {
		return err
	}
	d.printf("go on as you like; prices and stock have changed. ^C ends this and removes everything")
	return nil
}

// upgrade writes the second version and makes requests until all answers come from it.
func (d *demo) upgrade(ctx context.Context, n *node.Node, source string, w *demoWatch) error {
	d.printf("requesting random keys from now on, as fast as they are answered, and checking each answer")
	watched := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { watched <- w.watch(ctx) }()
	if err := d.write(source, demoSecond); err != nil {
		cancel()
		return errors.Join(err, <-watched)
	}
	d.printf("telling sequins to look at its source, as SIGHUP does")
	n.Refresh()
	if err := <-watched; err != nil {
		return err
	}
	d.printf("upgraded: %d answers from %s, then %d from %s; none failed, none was wrong, none went back",
		w.answers[demoFirst], demoFirst, w.answers[demoSecond], demoSecond)
	return nil
}

func (d *demo) write(source, version string) error {
	records, err := writeDemoVersion(source, version)
	if err != nil {
		return err
	}
	d.printf("wrote version %s of %s: %d products in %d SequenceFiles, in %s",
		version, demoDB, records, demoFiles, filepath.Join(source, demoDB, version))
	return nil
}

// printf prints a line with the time. Errors are ignored.
func (d *demo) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// demoCommands returns commands to try. The first key is in both versions.
func demoCommands(base string) string {
	return fmt.Sprintf(`
    curl %[1]s/%[2]s/red-wool-scarf
    curl -i %[1]s/%[2]s/blue-oak-chair
    curl -i %[1]s/%[2]s/no-such-product
    curl %[1]s/%[2]s
    curl %[1]s/healthz
    open %[1]s/ in a browser
`, base, demoDB)
}
