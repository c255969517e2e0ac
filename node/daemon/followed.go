package daemon

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/sleep"
)

// followed is what was read from files that may change while the node runs: it is read again when they have changed. Files that are not good,
// maybe because only one of a pair has been replaced so far, are not used, and read again later.
type followed struct {
	what  string // for the log
	log   *slog.Logger
	files []string     // "" for one that is not configured
	read  func() error // reads the files and uses them, if they are good

	turn  sync.Mutex             // one reading at a time, which may hang
	inUse []os.FileInfo          // the files as they were before they were read
	bad   []os.FileInfo          // the same, of those that were last found not to be good
	fault atomic.Pointer[string] // why the files as they are now are not in use, nil if they are
}

// followPeriod is the interval between looks at the files.
const followPeriod = time.Second

// follow looks at the files until ctx ends.
func (f *followed) follow(ctx context.Context) {
	for sleep.For(ctx, followPeriod) == nil {
		_ = f.look(false) // the error is logged
	}
}

// stat returns the files as they are, nil for one that is not there.
func (f *followed) stat() []os.FileInfo {
	found := make([]os.FileInfo, len(f.files))
	for i, name := range f.files {
		found[i], _ = os.Stat(name)
	}
	return found
}

// isSame reports whether a file has not been replaced or changed between two looks at it.
func isSame(a, b os.FileInfo) bool {
	return a == b || a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}

// look reads the files again if they have changed or it is asked to, and returns why they are not in use. It logs an error that nobody
// has asked for once.
func (f *followed) look(asked bool) error {
	f.turn.Lock()
	defer f.turn.Unlock()
	now := f.stat()
	if !asked && slices.EqualFunc(now, f.inUse, isSame) {
		f.fault.Store(nil) // the former files may have been put back
		return nil
	}
	err := f.read()
	if err == nil {
		f.inUse = now
		f.fault.Store(nil)
		return nil
	}
	text := err.Error()
	if former := f.fault.Swap(&text); asked || former == nil || !slices.EqualFunc(now, f.bad, isSame) {
		f.bad = now
		f.log.Error("files have changed and are not good; the old ones stay", "files", f.what, "error", err)
	}
	return err
}

// problem returns why the files as they are now are not in use, "" if they are.
func (f *followed) problem() string {
	if fault := f.fault.Load(); fault != nil {
		return *fault
	}
	return ""
}
