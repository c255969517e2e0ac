package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
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

// requestLog is the file of the request log.
type requestLog struct {
	path  string // "stdout", or a file to append to
	f     atomic.Pointer[os.File]
	lines *lines
}

func openRequestLog(path string) (*requestLog, error) {
	l := &requestLog{path: path}
	if err := l.reopen(); err != nil {
		return nil, err
	}
	l.lines = newLines(l.write)
	return l, nil
}

// reopen opens the file, again if it was moved away. If that fails, the old file stays in use. It does not wait for the reader of a pipe.
func (l *requestLog) reopen() error {
	f := os.Stdout
	if l.path != "stdout" {
		var err error
		if f, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o640); err != nil {
			return fmt.Errorf("debug.request_log_file: %w", err)
		}
	}
	return closeFile(l.f.Swap(f))
}

// Write adds a line, and does not wait until it is written.
func (l *requestLog) Write(line []byte) (int, error) {
	_, err := l.lines.add(line)
	return len(line), err
}

func (l *requestLog) write(lines []byte) error {
	for {
		f := l.f.Load()
		n, err := f.Write(lines)
		if !errors.Is(err, os.ErrClosed) || f == l.f.Load() {
			return err
		}
		lines = lines[n:] // reopen has closed it
	}
}

// Close writes what is left, and closes the file. Later lines are left out.
func (l *requestLog) Close() error {
	l.lines.Close()
	return closeFile(l.f.Load())
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
