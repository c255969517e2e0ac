package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sequins/cmd/sequins/demo"
	"sequins/config"
)

func demoCommand() *cobra.Command {
	var bind string
	var pause time.Duration
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
				open := func(ctx context.Context) (demo.Node, string, error) {
					return openDemo(ctx, c, !cmd.Flags().Changed("bind"), log)
				}
				return (&demo.Demo{Source: c.Source, Pause: pause, Out: cmd.OutOrStdout(), Open: open}).Run(ctx)
			})
		},
	}
	cmd.Flags().StringVarP(&bind, "bind", "b", "127.0.0.1:9599", "`address` to serve on; without this flag, another port if it is in use")
	cmd.Flags().DurationVar(&pause, "pause", 10*time.Second, "time to serve the first version before the second is published")
	return cmd
}

// openDemo opens the node of the demo, with anyPort on another port if its own is taken.
func openDemo(ctx context.Context, c config.Config, anyPort bool, log *slog.Logger) (demo.Node, string, error) {
	s, err := open(ctx, c, log)
	if anyPort && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(c.Bind)
		c.Bind = net.JoinHostPort(host, "0")
		s, err = open(ctx, c, log)
	}
	if err != nil {
		return nil, "", err
	}
	return s.node, "http://" + s.address, nil
}
