package events

import (
	"context"
	"log/slog"
	"regexp"
	"time"

	"sequins/observe/status"
)

// DB records the events of one database. Its methods take the names of versions in the source.
type DB struct {
	recorder *Recorder // may be nil
	name     string
	log      *slog.Logger
}

// DB returns a DB that logs to log, which should name the database. It creates the counters of the database at 0, so
// that the first event is visible as an increase.
func (r *Recorder) DB(name string, log *slog.Logger) *DB {
	if r != nil {
		r.o.Metrics.DB(name)
	}
	return &DB{recorder: r, name: name, log: log}
}

// changedInPlace is why there is another content of a version that was found before.
const changedInPlace = "its files in the source, or the options that they are read with, have changed"

// Found records that a version is in the source or on disk. changed reports whether it was found before with another input.
func (d *DB) Found(name string, changed bool) {
	reason := ""
	if changed {
		reason = changedInPlace
	}
	d.event(slog.LevelInfo, "version found", name, status.EventFound, reason)
}

// Loaded records that the partitions of this node are loaded. summary and attrs have the figures of the load, for people and for slog.
func (d *DB) Loaded(name, summary string, attrs ...any) {
	d.event(slog.LevelInfo, "load finished", name, status.EventLoaded, summary, attrs...)
}

// Held records that a gate keeps a version from being served.
func (d *DB) Held(name, reason string) {
	d.event(slog.LevelWarn, "version held", name, status.EventHeld, reason, "reason", reason)
}

// Approved records that a version is served although a gate would hold it; reason says by whom and why.
func (d *DB) Approved(name, reason string) {
	d.event(slog.LevelInfo, "version approved", name, status.EventApproved, reason, "reason", reason)
}

// Active records that the node answers from a version, the time after it was found, and the version before, if any: the same one after a switch to
// another content of it.
func (d *DB) Active(name, insteadOf string, after time.Duration) {
	after = after.Round(time.Millisecond)
	attrs, reason := []any{"after", after}, ""
	if insteadOf != "" {
		attrs, reason = append(attrs, "instead_of", insteadOf), "instead of "+insteadOf
	}
	if insteadOf == name {
		reason = changedInPlace
	}
	d.event(slog.LevelInfo, "version active", name, status.EventActive, reason, attrs...)
}

// Pinned records that the pin of the database has changed. name is "" if none is pinned; reason says what is pinned
// or excluded, by whom and why.
func (d *DB) Pinned(name, reason string) {
	d.log.Info("the pin of the database has changed", "pin", reason)
	d.recorder.record(d.name, name, status.EventPinned, reason)
}

// RolledBack records that the node answers from an older version than before. It follows Active.
func (d *DB) RolledBack(name, from, reason string) {
	detail := "from " + from
	if reason != "" {
		detail += ": " + reason
	}
	d.event(slog.LevelWarn, "version rolled back to", name, status.EventRolledBack, detail, "instead_of", from, "reason", reason)
}

// Failed records that an attempt to load a version has failed. state is the state of the version, before the reason of the last
// failure of the same files: the same reason again is no event.
func (d *DB) Failed(name string, state any, reason, before string) {
	if figures.ReplaceAllString(reason, "0") == figures.ReplaceAllString(before, "0") {
		d.log.Debug("version failed again", "version", name, "state", state, "error", reason)
		return
	}
	d.event(slog.LevelError, "version failed", name, status.EventFailed, reason, "state", state, "error", reason)
}

// figures are numbers with their units, such as the free space of a disk, or in the names of temporary files. Errors that differ in nothing else
// have the same reason.
var figures = regexp.MustCompile(`[0-9]+(\.[0-9]+)*( [KMGT]?i?B)?`)

// Removed records that a version is no longer on this node, or, if changed, only one content of it.
func (d *DB) Removed(name string, changed bool) {
	reason := ""
	if changed {
		reason = "another content of it stays: " + changedInPlace
	}
	d.event(slog.LevelInfo, "version removed", name, status.EventRemoved, reason)
}

// event logs and records an event.
func (d *DB) event(level slog.Level, msg, name string, kind status.EventKind, reason string, attrs ...any) {
	d.log.Log(context.Background(), level, msg, append([]any{"version", name}, attrs...)...)
	d.recorder.record(d.name, name, kind, reason)
}
