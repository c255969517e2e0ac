package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// followed is what was read from files that may change while the node runs: it is read again when they have changed. Files that are not good,
// maybe because only one of a pair has been replaced so far, are not used, and read again later.
type followed struct {
	what    string       // for the log
	log     *slog.Logger // may be nil if nothing follows
	changed func() bool  // reports whether the files are other ones than those in use
	read    func() error // reads the files and uses them, if they are good

	turn  sync.Mutex // one reading at a time, which may hang
	mu    sync.Mutex
	fault string // why the files as they are now are not in use, "" if they are; it is logged only once
}

// followPeriod is the interval between looks at the files.
const followPeriod = time.Second

// follow looks at the files until ctx ends.
func (f *followed) follow(ctx context.Context) {
	tick := time.NewTicker(followPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.look()
		}
	}
}

// look reads the files again if they have changed.
func (f *followed) look() {
	if f.changed() {
		_ = f.reload(false) // it has been logged
		return
	}
	f.setFault("") // the former files may have been put back
}

// reload reads the files again. An error is logged once, or each time if asked is true.
func (f *followed) reload(asked bool) error {
	f.turn.Lock()
	defer f.turn.Unlock()
	err := f.read()
	if err == nil {
		f.setFault("")
		return nil
	}
	if former := f.setFault(err.Error()); asked || err.Error() != former {
		f.log.Error(f.what+" have changed and are not good; the old ones stay", "error", err)
	}
	return err
}

// setFault sets the fault and returns the former one.
func (f *followed) setFault(fault string) (former string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	former, f.fault = f.fault, fault
	return former
}

// problem returns why the files as they are now are not in use, "" if they are.
func (f *followed) problem() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}
