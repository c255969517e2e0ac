package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sequins/client"
	"sequins/config"
	"sequins/internal/sleep"
	"sequins/node/daemon"
)

func demoCommand() *cobra.Command {
	var d demo
	var bind string
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
			d.out = cmd.OutOrStdout()
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			return untilSignal(cmd.Context(), log, endPatience, nil, func(ctx context.Context) (err error) {
				dir, err := os.MkdirTemp("", "sequins-demo-")
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
				c := config.Default()
				c.Source, c.LocalStore, c.Bind = filepath.Join(dir, "source"), filepath.Join(dir, "store"), bind
				c.RequireSuccessFile, c.ContentType = config.RequireTrue, "application/json"
				c.Settle = 0 // _SUCCESS is the last file that the demo writes
				if err := c.Validate(); err != nil {
					return err
				}
				return d.run(ctx, c, !cmd.Flags().Changed("bind"), log)
			})
		},
	}
	cmd.Flags().StringVarP(&bind, "bind", "b", "127.0.0.1:9599", "`address` to serve on; without this flag, another port if it is in use")
	cmd.Flags().DurationVar(&d.pause, "pause", 10*time.Second, "time to serve the first version before the second is published")
	return cmd
}

type demo struct {
	pause  time.Duration // time to serve the first version before the second is published
	out    io.Writer
	source string // directory that the versions are written to
	node   *client.Node
}

// run runs the demo, and the node until the context ends. With anyPort, the node gets another port if its own is taken.
func (d *demo) run(ctx context.Context, c config.Config, anyPort bool, log *slog.Logger) error {
	d.source = c.Source
	if err := d.write(demoFirst); err != nil {
		return err
	}
	s, err := daemon.Open(ctx, c, buildName(), log)
	if anyPort && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(c.Bind)
		c.Bind = net.JoinHostPort(host, "0")
		s, err = daemon.Open(ctx, c, buildName(), log)
	}
	if err != nil {
		return err
	}
	url, err := addressURL(s.Address)
	if err != nil {
		return err
	}
	d.node = client.NewNode(client.NodeOptions{URL: url})
	defer d.node.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Run(ctx) })
	g.Go(func() error {
		if err := d.show(ctx, s.Refresh); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	return g.Wait()
}

// show runs the demo against the node and prints its progress. refresh makes the node look at its source.
func (d *demo) show(ctx context.Context, refresh func()) error {
	keys := demoKeys()
	ask := func() (version string, err error) { // requests a random key and checks its value
		key := keys[rand.IntN(len(keys))]
		v, err := d.node.Get(ctx, demoDB, []byte(key), client.Want{})
		if err != nil {
			return "", err
		}
		defer v.Close() //nolint:errcheck // it is only read
		value, err := io.ReadAll(v)
		if want := product(v.Version, key); err == nil && string(value) != want {
			err = fmt.Errorf("%s was answered from %s with %q instead of %q", key, v.Version, value, want)
		}
		return v.Version, err
	}
	for _, err := ask(); err != nil; _, err = ask() {
		if err := sleep.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	d.printf("serving version %s; try, in another terminal:\n%s", demoFirst, d.commands())
	d.printf("in %v there will be a second version", d.pause)
	if err := sleep.For(ctx, d.pause); err != nil {
		return err
	}
	if err := d.write(demoSecond); err != nil {
		return err
	}
	d.printf("telling sequins to look at its source, as SIGHUP does")
	refresh()
	d.printf("requesting random keys from now on, as fast as they are answered, and checking each answer")
	answers, last, upgraded := make(map[string]int), demoFirst, time.Time{}
	for upgraded.IsZero() || time.Since(upgraded) < time.Second {
		served, err := ask()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case served < last:
			return fmt.Errorf("a key was answered from %s after another one from %s", served, last)
		case served > last:
			last, upgraded = served, time.Now()
		}
		answers[served]++
	}
	d.printf("upgraded: %d answers from %s, then %d from %s; none failed, none was wrong, none went back",
		answers[demoFirst], demoFirst, answers[demoSecond], demoSecond)
	d.printf("go on as you like; prices and stock have changed. ^C ends this and removes everything")
	return nil
}

func (d *demo) write(version string) error {
	records, err := writeDemo(d.source, version)
	if err != nil {
		return err
	}
	d.printf("wrote version %s of %s: %d products in %d SequenceFiles, in %s",
		version, demoDB, records, demoFiles, filepath.Join(d.source, demoDB, version))
	return nil
}

// printf prints a line with the time. Errors are ignored.
func (d *demo) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

func (d *demo) commands() string {
	return fmt.Sprintf(`
    curl %[1]s/%[2]s/red-wool-scarf
    curl -i %[1]s/%[2]s/blue-oak-chair
    curl -i %[1]s/%[2]s/no-such-product
    curl %[1]s/%[2]s
    curl %[1]s/healthz
    sequins scan %[2]s --prefix red- --server %[1]s
    sequins top --server %[1]s
    open %[1]s/ in a browser
`, d.node.URL(), demoDB)
}
