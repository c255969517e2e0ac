package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"sequins/config"
)

// untilSignal runs a function and cancels its context on SIGINT or SIGTERM. A second signal exits
// immediately. SIGHUP calls reload; if reload is nil, SIGHUP is treated like SIGTERM.
func untilSignal(ctx context.Context, log *slog.Logger, reload func(), run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if s == syscall.SIGHUP && reload != nil {
				reload()
				continue
			}
			if ctx.Err() != nil {
				log.Error("a second signal: exiting at once", "signal", s)
				os.Exit(exitCode(s))
			}
			log.Info("signal: finishing what is in flight; another one exits at once", "signal", s)
			cancel()
		}
	}
}

// exitCode returns the exit code for a signal, as in shells.
func exitCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailure
}

// reloader applies the settings that SIGHUP may change.
type reloader struct {
	flags   serveFlags
	running config.Config
	serving *serving
	systemd *notifier
	level   *slog.LevelVar
	log     *slog.Logger
	turn    sync.Mutex // a signal and a request may come together
}

// reload reads the configuration again, passes the reloadable keys to the node, and makes it list the
// source. If the configuration is invalid, its settings are not applied, but the source is listed. The
// tokens are read again and the request log is reopened in both cases. The error says what stays as it was.
func (r *reloader) reload() error {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.systemd.reloading()
	defer r.systemd.reloaded()
	var unopened error
	if l := r.serving.requestLog; l != nil {
		if err := l.reopen(); err != nil {
			r.log.Error("reload: the request log stays as it is", "error", err)
			unopened = fmt.Errorf("the request log: %w", err)
		}
	}
	fresh, warnings, err := r.flags.load()
	for _, w := range warnings {
		r.log.Warn("configuration: " + w.Error())
	}
	var unread error
	if t := r.serving.tokens; t != nil {
		unread = t.reload(true)
	}
	r.serving.metrics.Process.Configured(err == nil && unread == nil)
	if err != nil {
		r.log.Error("reload: the configuration is not good; the old one stays", "error", err)
	} else {
		err = r.apply(fresh)
	}
	r.serving.node.Reloaded(errors.Join(err, unopened)) // the status has the error of the tokens until they are good
	r.serving.node.Refresh()
	return errors.Join(err, unread, unopened)
}

func (r *reloader) apply(fresh config.Config) error {
	taken, left := []string{}, []string{}
	for _, change := range config.Changes(r.running, fresh) {
		if change.Reloadable {
			taken = append(taken, change.Key)
		} else {
			left = append(left, change.Key)
		}
	}
	r.log.Info("reload: looking for new versions", "changed", taken)
	if len(left) > 0 {
		r.log.Warn("reload: these keys have changed and need a restart", "keys", left)
	}
	r.running = config.Reloaded(r.running, fresh)
	r.level.Set(logLevel(r.running.Log))
	r.serving.alike.set(r.running)
	r.serving.node.Apply(reloadable(r.running))
	t, err := target(&r.running.Events)
	if err != nil {
		r.log.Error("reload: events are sent as before", "error", err)
		return err
	}
	r.serving.events.SetTarget(t)
	return nil
}
