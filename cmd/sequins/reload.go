package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"sequins/config"
)

// A reloader applies the settings that SIGHUP may change. Reloads run one at a time, on the goroutine of run: what they read may be on
// a file system that does not answer. Those that are requested while one runs are one reload, which follows it.
type reloader struct {
	path      string        // the file that the start has read, "" for none
	searched  bool          // it was found on the search path
	overrides []config.Flag // of the command line
	running   config.Config // belongs to the reload that runs
	serving   *serving
	systemd   *notifier
	level     *slog.LevelVar
	log       *slog.Logger

	stopping context.Context    // ends when the node shuts down: no reload begins any more, or is waited for
	requests chan chan reloaded // with room for some
}

// reloaded is the result of a reload: what stays as it was, and why, and the keys that have changed and need a restart.
type reloaded struct {
	restart []string
	err     error
}

// reloadPatience is the time after which a reload that has not ended counts as failed until it ends.
const reloadPatience = 10 * time.Second

var (
	errReloadHangs    = fmt.Errorf("the reload has not ended after %v: a file system does not answer", reloadPatience)
	errReloadStopping = errors.New("sequins is shutting down")
)

// request requests a reload that begins later than the call, and does not wait for it. The channel gets its result, unless too many wait:
// they are served by one reload, which follows all the same.
func (r *reloader) request() <-chan reloaded {
	done := make(chan reloaded, 1)
	select {
	case r.requests <- done:
	default:
	}
	return done
}

// reload requests a reload and waits for its end, but not for one that hangs.
func (r *reloader) reload() (restart []string, err error) {
	select {
	case got := <-r.request():
		return got.restart, got.err
	case <-r.stopping.Done():
		return nil, errReloadStopping
	case <-time.After(reloadPatience):
		return nil, errReloadHangs
	}
}

// run runs the reloads that are requested, until stopping ends, or for good if one hangs.
func (r *reloader) run() {
	for {
		var waiting []chan reloaded
		select {
		case <-r.stopping.Done():
			return
		case first := <-r.requests:
			waiting = append(waiting, first)
		}
		for len(r.requests) > 0 {
			waiting = append(waiting, <-r.requests)
		}
		restart, err := r.once()
		for _, done := range waiting {
			done <- reloaded{restart, err}
		}
	}
}

// once reads the configuration again, passes the reloadable keys to the node, and makes it list the
// source. If the configuration cannot be read or is invalid, its settings are not applied, but the source is listed. The
// tokens are read again and the request log is reopened in both cases. The error says what stays as it was, and
// restart which keys need one.
func (r *reloader) once() (restart []string, err error) {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every system has this clock
	r.systemd.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
	hangs := time.AfterFunc(reloadPatience, func() {
		r.log.Error("reload: it has not ended yet", "error", errReloadHangs)
		r.serving.node.Reloaded(errReloadHangs)
	})
	var unopened, unread error
	if l := r.serving.requestLog; l != nil {
		if unopened = l.reopen(); unopened != nil {
			unopened = fmt.Errorf("the request log: %w", unopened)
		}
	}
	if t := r.serving.tokens; t != nil {
		unread = t.reload(true)
	}
	fresh, warnings, invalid := r.read()
	hangs.Stop()
	if r.stopping.Err() != nil {
		return nil, errReloadStopping
	}
	defer r.systemd.send("READY=1")
	for _, w := range warnings {
		r.log.Warn("configuration: " + w.Error())
	}
	if unopened != nil {
		r.log.Error("reload: the request log stays as it is", "error", unopened)
	}
	if invalid != nil {
		r.log.Error("reload: the configuration is not good; the old one stays", "error", invalid)
	} else {
		restart = r.applyConfig(fresh)
	}
	err = errors.Join(invalid, unopened)
	r.serving.node.Reloaded(err) // the status has the error of the tokens until they are good
	r.serving.node.Refresh()
	return restart, errors.Join(err, unread)
}

// read reads the configuration with its secrets.
func (r *reloader) read() (fresh config.Config, warnings []*config.Warning, err error) {
	if r.path == "" {
		fresh, warnings, err = config.Load("", r.overrides...)
	} else {
		fresh, warnings, err = config.Reload(r.path, r.overrides...)
	}
	if err != nil {
		return fresh, warnings, err
	}
	if other := config.Find(config.SearchPath); r.searched && other != r.path {
		r.log.Warn("reload: a restart would read another configuration file", "file", other, "now", r.path)
	}
	return fresh, warnings, fresh.ReadSecrets()
}

// applyConfig applies a configuration, and returns the keys that have changed and need a restart.
func (r *reloader) applyConfig(fresh config.Config) []string {
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
	running := r.running
	r.serving.config.Store(&running)
	r.serving.node.Apply(reloadable(r.running))
	r.serving.node.NeedsRestart(left)
	r.serving.events.SetTarget(target(&r.running.Events))
	return left
}
