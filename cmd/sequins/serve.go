package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/node/daemon"
	"sequins/source"
)

// serveFlags are the flags of the root command. An empty one was not given.
type serveFlags struct {
	config, source, bind, localStore, debugBind string
}

func (f *serveFlags) register(cmd *cobra.Command) {
	f.registerSource(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.bind, "bind", "b", "", "`address` (host:port) to serve on")
	flags.StringVarP(&f.localStore, "local-store", "l", "", "`directory` for local copies of the data")
	flags.StringVar(&f.debugBind, "debug-bind", "", "`address` (host:port) of the listener for metrics and profiles")
}

func (f *serveFlags) registerSource(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	registerConfig(flags, &f.config)
	flags.StringVarP(&f.source, "source", "r", "", "source of the data: a `directory` or URL")
}

// absolute makes a path absolute. URLs and empty strings are unchanged.
func absolute(path string) (string, error) {
	if path == "" || strings.Contains(path, "://") {
		return path, nil
	}
	return filepath.Abs(path)
}

// given returns the configuration file to read, if there is one or else the flags or the environment name a source, and the keys that
// flags set. Relative paths are relative to the current directory.
func (f *serveFlags) given() (given daemon.Given, err error) {
	given = daemon.Given{Path: cmp.Or(f.config, config.Find(config.SearchPath))}
	if given.Path == "" && f.source == "" && os.Getenv(config.Variable("source")) == "" {
		return given, errNoConfig()
	}
	src, err := absolute(f.source)
	store, serr := absolute(f.localStore)
	given.Flags = slices.DeleteFunc([]config.Flag{
		{Name: "--source", Key: "source", Value: src},
		{Name: "--bind", Key: "bind", Value: f.bind},
		{Name: "--local-store", Key: "local_store", Value: store},
		{Name: "--debug-bind", Key: "debug.bind", Value: f.debugBind},
	}, func(flag config.Flag) bool { return flag.Value == "" })
	return given, cmp.Or(err, serr)
}

func (f *serveFlags) withSource(ctx context.Context, run func(c *config.Config, src source.Source) error) error {
	given, err := f.given()
	if err != nil {
		return err
	}
	c, _, err := config.Load(given.Path, given.Flags...)
	if err != nil {
		return err
	}
	src, err := daemon.OpenSource(ctx, &c)
	if err != nil {
		return err
	}
	return run(&c, src)
}

// serve runs a node until a signal.
func serve(ctx context.Context, stderr io.Writer, flags serveFlags) error {
	given, err := flags.given()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a reader of the log that ends is no reason to end
	early := make(chan os.Signal, 1)
	signal.Notify(early, syscall.SIGHUP) // which would end the process
	d, err := daemon.Start(ctx, given, buildName(), stderr)
	if err != nil {
		return err
	}
	return untilSignal(ctx, d.Log, d.ShutdownDelay()+endPatience, func() { d.RequestReload() }, func(ctx context.Context) error {
		if len(early) > 0 { // while the configuration was read, or after that
			d.RequestReload()
		}
		return d.Run(ctx)
	})
}
