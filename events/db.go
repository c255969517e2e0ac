package events

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"sequins/status"
	"sequins/version"
)

// DB records the events of one database. Its methods take the ids of versions, which a reason and the log show;
// Event.Version is the name in the source.
type DB struct {
	recorder *Recorder // may be nil
	name     string
	log      *slog.Logger
}

// DB returns a DB that logs to log, which should name the database. It creates the counters of the database at 0, so
// that the first event is visible as an increase.
func (r *Recorder) DB(name string, log *slog.Logger) *DB {
	if r != nil {
		r.metrics.DB(name)
	}
	return &DB{recorder: r, name: name, log: log}
}

// Forget drops the history and the counters of a removed database. The last events of the node stay.
func (d *DB) Forget() {
	if r := d.recorder; r != nil {
		r.metrics.Forget(d.name)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.history.forget(d.name)
	}
}

// Found records that a version is in the source or on disk.
func (d *DB) Found(id string) {
	reason := ""
	if version.Name(id) != id {
		reason = "its files in the source have changed"
	}
	d.event(slog.LevelInfo, "version found", id, status.EventFound, reason)
}

// Loaded records that the partitions of this node are loaded. attrs are figures of the load, as for slog.
func (d *DB) Loaded(id string, attrs ...any) {
	d.event(slog.LevelInfo, "load finished", id, status.EventLoaded, describe(attrs), attrs...)
}

// Held records that a gate keeps a version from being served.
func (d *DB) Held(id, reason string) {
	d.event(slog.LevelWarn, "version held", id, status.EventHeld, reason, "reason", reason)
}

// Approved records that a version is served although a gate would hold it; reason says by whom and why.
func (d *DB) Approved(id, reason string) {
	d.event(slog.LevelInfo, "version approved", id, status.EventApproved, reason, "reason", reason)
}

// Active records that the node answers from a version, the time after it was found, and the version before, if any.
func (d *DB) Active(id, insteadOf string, after time.Duration) {
	after = after.Round(time.Millisecond)
	attrs, reason := []any{"after", after}, ""
	if insteadOf != "" {
		attrs, reason = append(attrs, "instead_of", insteadOf), "instead of "+insteadOf
	}
	d.event(slog.LevelInfo, "version active", id, status.EventActive, reason, attrs...)
}

// Pinned records that the pin of the database has changed. id is "" if none is pinned; reason says what is pinned
// or excluded, by whom and why.
func (d *DB) Pinned(id, reason string) {
	d.log.Info("the pin of the database has changed", "pin", reason)
	d.recorder.record(d.name, id, status.EventPinned, reason)
}

// RolledBack records that the node answers from an older version than before. It follows Active.
func (d *DB) RolledBack(id, from, reason string) {
	detail := "from " + from
	if reason != "" {
		detail += ": " + reason
	}
	d.event(slog.LevelWarn, "version rolled back to", id, status.EventRolledBack, detail, "instead_of", from, "reason", reason)
}

// Failed records that an attempt to load a version has failed. state is the state of the version, before the reason of the last
// failure of the same files: the same reason again is no event.
func (d *DB) Failed(id string, state any, reason, before string) {
	if sameReason(reason, before) {
		d.log.Debug("version failed again", "version", id, "state", state, "error", reason)
		return
	}
	d.event(slog.LevelError, "version failed", id, status.EventFailed, reason, "state", state, "error", reason)
}

// sameReason reports whether two errors differ in nothing but numbers and units, as the free space of a disk does and the names of temporary
// files.
func sameReason(a, b string) bool {
	return figures.ReplaceAllString(a, "0") == figures.ReplaceAllString(b, "0")
}

var figures = regexp.MustCompile(`[0-9]+(\.[0-9]+)*( [KMGT]?i?B)?`)

// Removed records that a version is no longer on this node.
func (d *DB) Removed(id string) {
	d.event(slog.LevelInfo, "version removed", id, status.EventRemoved, "")
}

// event logs and records an event.
func (d *DB) event(level slog.Level, msg, id string, kind status.EventKind, reason string, attrs ...any) {
	d.log.Log(context.Background(), level, msg, append([]any{"version", id}, attrs...)...)
	d.recorder.record(d.name, id, kind, reason)
}

// describe returns the attributes of a line of the log as a text: files 4/4, records 1000.
func describe(attrs []any) string {
	var parts []string
	for i := 0; i+1 < len(attrs); i += 2 {
		parts = append(parts, fmt.Sprintf("%v %v", attrs[i], attrs[i+1]))
	}
	return strings.Join(parts, ", ")
}
