package daemon

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"sequins/config"
)

// reloadPatience is the time after which a reload that has not ended counts as failed until it ends.
const reloadPatience = 10 * time.Second

var (
	errReloadHangs    = fmt.Errorf("the reload has not ended after %v: a file system does not answer", reloadPatience)
	errReloadStopping = errors.New("sequins is shutting down")
)

// RequestReload requests a reload that begins later than the call, and does not wait for it. The channel gets its result. Reloads run one
// at a time, on a goroutine of their own: what they read may be on a file system that does not answer. Those that are requested while one
// runs are one reload, which follows it.
func (d *Daemon) RequestReload() <-chan singleflight.Result {
	return d.nextReload.DoChan("", func() (any, error) {
		d.reloading.Lock()
		defer d.reloading.Unlock()
		d.nextReload.Forget("") // a request from now on needs another reload
		if d.stopping.Err() != nil {
			return nil, errReloadStopping
		}
		return d.reloadOnce()
	})
}

// reload requests a reload and waits for its end, but not for one that hangs. It returns the keys that have changed and need a restart; the
// error says what stays as it was, and why.
func (d *Daemon) reload() (restart []string, err error) {
	select {
	case got := <-d.RequestReload():
		restart, _ = got.Val.([]string)
		return restart, got.Err
	case <-d.stopping.Done():
		return nil, errReloadStopping
	case <-time.After(reloadPatience):
		return nil, errReloadHangs
	}
}

// reloadOnce reads the configuration again, passes the reloadable keys to the node, and makes it list the
// source. If the configuration cannot be read or is invalid, its settings are not applied, but the source is listed. The
// tokens are read again and the request log is reopened in both cases. The error says what stays as it was, and
// restart which keys need one.
func (d *Daemon) reloadOnce() (restart []string, err error) {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every system has this clock
	d.notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
	before := d.reloaded.Load()
	hangs := time.AfterFunc(reloadPatience, func() {
		d.Log.Error("reload: it has not ended yet", "error", errReloadHangs)
		d.reloaded.CompareAndSwap(before, newReloaded(before.restart, errReloadHangs))
	})
	var unopened, unread error
	if l := d.requestLog; l != nil {
		if unopened = l.reopen(); unopened != nil {
			unopened = fmt.Errorf("the request log: %w", unopened)
		}
	}
	if t := d.tokens; t != nil {
		unread = t.look(true)
	}
	fresh, warnings, invalid := config.Reload(d.given.Path, d.given.Flags...)
	if invalid == nil {
		invalid = fresh.ReadSecrets()
	}
	hangs.Stop()
	if d.stopping.Err() != nil {
		return nil, errReloadStopping
	}
	defer d.notify("READY=1")
	for _, w := range warnings {
		d.Log.Warn("configuration: " + w.Error())
	}
	if unopened != nil {
		d.Log.Error("reload: the request log stays as it is", "error", unopened)
	}
	needed := before.restart
	if invalid != nil {
		d.Log.Error("reload: the configuration is not good; the old one stays", "error", invalid)
	} else {
		restart = d.applyConfig(fresh)
		needed = restart
	}
	err = errors.Join(invalid, unopened)
	d.reloaded.Store(newReloaded(needed, err)) // the status has the error of the tokens until they are good
	d.node.Refresh()
	return restart, errors.Join(err, unread)
}

// A reloaded is the result of the last reload, for the status.
type reloaded struct {
	restart []string // the keys whose values in the configuration are not in use before a restart
	err     error    // why the configuration is not in use; nil: it is
	at      time.Time
}

func newReloaded(restart []string, err error) *reloaded {
	return &reloaded{restart, err, time.Now().UTC().Truncate(time.Second)}
}

// applyConfig applies a configuration, and returns the keys that have changed and need a restart.
func (d *Daemon) applyConfig(fresh config.Config) []string {
	now, changed, left := config.Reloaded(*d.config.Load(), fresh)
	d.Log.Info("reload: looking for new versions", "changed", changed)
	if len(left) > 0 {
		d.Log.Warn("reload: these keys have changed and need a restart", "keys", left)
	}
	d.config.Store(&now)
	d.level.Set(logLevel(now.Log))
	d.node.Apply(reloadable(now))
	d.events.SetTarget(target(&now.Events))
	return left
}
