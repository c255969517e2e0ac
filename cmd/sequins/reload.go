package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

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

	stopping context.Context // ends when the node shuts down: no reload begins any more, or is waited for
	wake     chan struct{}   // has an element if next is not nil, and room for one

	mu   sync.Mutex
	next *reload // that is requested and has not begun; nil if there is none
}

// A reload is one reading of the configuration.
type reload struct {
	ended chan struct{} // closed at the end
	// Valid then: what stays as it was, and why, and the keys that have changed and need a restart.
	err     error
	restart []string
}

// reloadPatience is the time after which a reload that has not ended counts as failed until it ends.
const reloadPatience = 10 * time.Second

var (
	errReloadHangs    = fmt.Errorf("the reload has not ended after %v: a file system does not answer", reloadPatience)
	errReloadStopping = errors.New("sequins is shutting down")
)

// request requests a reload and does not wait for it. The returned reload begins later than the call.
func (r *reloader) request() *reload {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &reload{ended: make(chan struct{})}
		r.wake <- struct{}{}
	}
	return r.next
}

// reload requests a reload and waits for its end, but not for one that hangs.
func (r *reloader) reload() (restart []string, err error) {
	requested := r.request()
	hangs := time.NewTimer(reloadPatience)
	defer hangs.Stop()
	select {
	case <-requested.ended:
		return requested.restart, requested.err
	case <-r.stopping.Done():
		return nil, errReloadStopping
	case <-hangs.C:
		return nil, errReloadHangs
	}
}

// run runs the reloads that are requested, until stopping ends.
func (r *reloader) run() {
	for r.stopping.Err() == nil {
		select {
		case <-r.stopping.Done():
		case <-r.wake:
			r.mu.Lock()
			one := r.next
			r.next = nil
			r.mu.Unlock()
			one.restart, one.err = r.once()
			close(one.ended)
		}
	}
}

// once reads the configuration again, passes the reloadable keys to the node, and makes it list the
// source. If the configuration cannot be read or is invalid, its settings are not applied, but the source is listed. The
// tokens are read again and the request log is reopened in both cases. The error says what stays as it was, and
// restart which keys need one.
func (r *reloader) once() (restart []string, err error) {
	if r.stopping.Err() != nil {
		return nil, errReloadStopping
	}
	r.systemd.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonicMicros()))
	read := make(chan rereading, 1)
	go func() { read <- r.read() }() // nobody waits for it if it hangs when the process ends
	hangs := time.NewTimer(reloadPatience)
	defer hangs.Stop()
	for {
		select {
		case got := <-read:
			defer r.systemd.send("READY=1")
			return r.apply(&got)
		case <-hangs.C:
			r.log.Error("reload: it has not ended yet", "error", errReloadHangs)
			r.serving.node.Reloaded(errReloadHangs)
		case <-r.stopping.Done():
			return nil, errReloadStopping
		}
	}
}

// rereading is what a reload has read.
type rereading struct {
	fresh    config.Config
	warnings []*config.Warning

	unopened, invalid, unread error // of the request log, the configuration with its secrets, and the tokens
}

// read reads all files. It may hang.
func (r *reloader) read() (got rereading) {
	if l := r.serving.requestLog; l != nil {
		if err := l.reopen(); err != nil {
			got.unopened = fmt.Errorf("the request log: %w", err)
		}
	}
	if r.path == "" {
		got.fresh, got.warnings, got.invalid = config.Load("", r.overrides...)
	} else {
		got.fresh, got.warnings, got.invalid = config.Reload(r.path, r.overrides...)
	}
	if other := config.Find(config.SearchPath); r.searched && got.invalid == nil && other != r.path {
		r.log.Warn("reload: a restart would read another configuration file", "file", other, "now", r.path)
	}
	if t := r.serving.tokens; t != nil {
		got.unread = t.reload(true)
	}
	if got.invalid == nil {
		got.invalid = got.fresh.ReadSecrets()
	}
	return got
}

// apply applies what was read, as far as it is good.
func (r *reloader) apply(got *rereading) (restart []string, err error) {
	for _, w := range got.warnings {
		r.log.Warn("configuration: " + w.Error())
	}
	if got.unopened != nil {
		r.log.Error("reload: the request log stays as it is", "error", got.unopened)
	}
	if got.invalid != nil {
		r.log.Error("reload: the configuration is not good; the old one stays", "error", got.invalid)
	} else {
		restart = r.applyConfig(got)
	}
	err = errors.Join(got.invalid, got.unopened)
	r.serving.node.Reloaded(err) // the status has the error of the tokens until they are good
	r.serving.node.Refresh()
	return restart, errors.Join(err, got.unread)
}

// applyConfig applies a configuration, and returns the keys that have changed and need a restart.
func (r *reloader) applyConfig(got *rereading) []string {
	taken, left := []string{}, []string{}
	for _, change := range config.Changes(r.running, got.fresh) {
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
	r.running = config.Reloaded(r.running, got.fresh)
	r.level.Set(logLevel(r.running.Log))
	running := r.running
	r.serving.config.Store(&running)
	r.serving.node.Apply(reloadable(r.running))
	r.serving.node.NeedsRestart(left)
	r.serving.events.SetTarget(target(&r.running.Events))
	return left
}
