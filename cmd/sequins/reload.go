package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"sequins/config"
)

// A reloader applies the settings that SIGHUP may change. Reloads run one at a time, on a goroutine of their own: what they read may be on
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

	stopping context.Context // ends when the node shuts down: no reload begins any more, or is waited for
	next     singleflight.Group
	turn     sync.Mutex // of the reload that runs
}

// reloadPatience is the time after which a reload that has not ended counts as failed until it ends.
const reloadPatience = 10 * time.Second

var (
	errReloadHangs    = fmt.Errorf("the reload has not ended after %v: a file system does not answer", reloadPatience)
	errReloadStopping = errors.New("sequins is shutting down")
)

// request requests a reload that begins later than the call, and does not wait for it. The channel gets its result.
func (r *reloader) request() <-chan singleflight.Result {
	return r.next.DoChan("", func() (any, error) {
		r.turn.Lock()
		defer r.turn.Unlock()
		r.next.Forget("") // a request from now on needs another reload
		if r.stopping.Err() != nil {
			return nil, errReloadStopping
		}
		return r.once()
	})
}

// reload requests a reload and waits for its end, but not for one that hangs. It returns the keys that have changed and need a restart; the
// error says what stays as it was, and why.
func (r *reloader) reload() (restart []string, err error) {
	select {
	case got := <-r.request():
		restart, _ = got.Val.([]string)
		return restart, got.Err
	case <-r.stopping.Done():
		return nil, errReloadStopping
	case <-time.After(reloadPatience):
		return nil, errReloadHangs
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
		unread = t.look(true)
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
func (r *reloader) read() (fresh config.Config, warnings []*config.Problem, err error) {
	if fresh, warnings, err = config.Load(r.path, r.overrides...); err != nil {
		return fresh, warnings, err
	}
	if other := config.Find(config.SearchPath); r.searched && other != r.path {
		r.log.Warn("reload: a restart would read another configuration file", "file", other, "now", r.path)
	}
	return fresh, warnings, fresh.ReadSecrets()
}

// applyConfig applies a configuration, and returns the keys that have changed and need a restart.
func (r *reloader) applyConfig(fresh config.Config) []string {
	next, changed, left := config.Reloaded(r.running, fresh)
	r.running = next
	r.log.Info("reload: looking for new versions", "changed", changed)
	if len(left) > 0 {
		r.log.Warn("reload: these keys have changed and need a restart", "keys", left)
	}
	r.level.Set(logLevel(r.running.Log))
	running := r.running
	r.serving.config.Store(&running)
	r.serving.node.Apply(reloadable(r.running))
	r.serving.node.NeedsRestart(left)
	r.serving.events.SetTarget(target(&r.running.Events))
	return left
}
