package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"sequins/config"
)

// newLogger logs to w as [log] says. Its level can be set anew while it is in use.
func newLogger(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(logLevel(c))
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds})), level
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), level
}

// logLevel is the level that the configuration names.
func logLevel(c config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		// The configuration was checked against the same names, which a test holds together.
		return slog.LevelInfo
	}
	return level
}

// inSeconds makes durations numbers that programs can compare; slog would have them in nanoseconds.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// requestLog is the file that requests are logged to. Each line of it is written as it comes.
type requestLog struct {
	path string // "stdout", or a file that is appended to

	mu sync.Mutex
	f  *os.File
}

func openRequestLog(path string) (*requestLog, error) {
	l := &requestLog{path: path}
	return l, l.reopen()
}

// reopen opens the file of this name that is there now, if the one that was open has been moved away. If it
// cannot be opened, the old one stays in use.
func (l *requestLog) reopen() error {
	f := os.Stdout
	if l.path != "stdout" {
		var err error
		if f, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return fmt.Errorf("debug.request_log_file: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.f
	l.f = f
	return closeFile(old)
}

// Write implements io.Writer.
func (l *requestLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

// Close closes the file. Writes fail from then on.
func (l *requestLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeFile(l.f)
}

// closeFile closes a file, if it is one, and not everybody's.
func closeFile(f *os.File) error {
	if f == nil || f == os.Stdout {
		return nil
	}
	if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("debug.request_log_file: %w", err)
	}
	return nil
}
