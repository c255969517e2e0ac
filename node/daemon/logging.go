package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"sequins/config"
)

// newLogger returns a logger to w, configured by [log], and its level, which may be changed later.
func newLogger(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(logLevel(c))
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds})), level
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), level
}

// logLevel returns the configured level.
func logLevel(c config.Log) (level slog.Level) {
	_ = level.UnmarshalText([]byte(c.Level)) // it is valid: a test holds the names together
	return level
}

// inSeconds converts durations to seconds; slog would format them in nanoseconds.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// requestLog is the file of the request log. Writes are not buffered.
type requestLog struct {
	path string // "stdout", or a file to append to

	mu sync.Mutex
	f  *os.File
}

func openRequestLog(path string) (*requestLog, error) {
	l := &requestLog{path: path}
	return l, l.open(0)
}

// reopen opens the file again if it was moved away. If that fails, the old file stays in use. It does not wait for the reader of a
// pipe.
func (l *requestLog) reopen() error { return l.open(syscall.O_NONBLOCK) }

func (l *requestLog) open(flags int) error {
	f := os.Stdout
	if l.path != "stdout" {
		var err error
		if f, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|flags, 0o640); err != nil {
			return fmt.Errorf("debug.request_log_file: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.f
	l.f = f
	return closeFile(old)
}

func (l *requestLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

// Close closes the file. Later writes fail.
func (l *requestLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeFile(l.f)
}

// closeFile closes a file, unless it is nil or standard output.
func closeFile(f *os.File) error {
	if f == nil || f == os.Stdout {
		return nil
	}
	if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("debug.request_log_file: %w", err)
	}
	return nil
}
