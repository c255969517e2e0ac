package daemon

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/config"
	"sequins/test/expect"
)

// Every level that the configuration accepts is one, and the default is slog's.
func TestLogLevels(t *testing.T) {
	for _, name := range wordsOf(config.Log{}, "Level") {
		if got := logLevel(config.Log{Level: name}); got.String() != strings.ToUpper(name) {
			t.Errorf("%s is %v", name, got)
		}
	}
	if got := logLevel(config.Default().Log); got != slog.LevelInfo {
		t.Errorf("the default is %v", got)
	}
}

func TestLogFormats(t *testing.T) {
	var b bytes.Buffer
	log, level := newLogger(&b, config.Log{Level: "warn", Format: "json"})
	log.Info("not said")
	log.Warn("said", "took", 1500*time.Millisecond, "error", os.ErrNotExist, "n", 3)
	level.Set(slog.LevelDebug)
	log.With("db", "words").Debug("said now")
	var lines []map[string]any
	for line := range strings.Lines(b.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		lines = append(lines, fields)
	}
	if len(lines) != 2 || lines[0]["took"] != 1.5 || lines[0]["error"] != "file does not exist" || lines[1]["db"] != "words" {
		t.Errorf("logged: %s", &b)
	}
	b.Reset()
	log, _ = newLogger(&b, config.Log{Level: "info", Format: "text"})
	log.Info("said", "took", 1500*time.Millisecond)
	if !strings.Contains(b.String(), "level=INFO msg=said took=1.5s\n") {
		t.Errorf("logged: %s", &b)
	}
}

// A request log that cannot be opened anew stays the one that it was.
func TestRequestLogStaysOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "requests.log")
	if _, err := openRequestLog(path); err == nil || !strings.Contains(err.Error(), "debug.request_log_file") {
		t.Errorf("without a directory: %v", err)
	}
	expect.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
	expect.NoError(t, os.WriteFile(path, nil, 0o600))
	l, err := openRequestLog(path)
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Dir(path) + ".old"
	expect.NoError(t, os.Rename(filepath.Dir(path), old))
	if err := l.reopen(); err == nil {
		t.Error("it was opened where there is no directory")
	}
	if _, err := l.Write([]byte("a line\n")); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(old, "requests.log")); err != nil || string(b) != "a line\n" {
		t.Errorf("%q, %v", b, err)
	}
	stdout, err := openRequestLog("stdout")
	if err != nil || stdout.reopen() != nil || stdout.Close() != nil {
		t.Errorf("stdout: %v", err)
	}
	if _, err := os.Stdout.Stat(); err != nil {
		t.Errorf("stdout was closed: %v", err)
	}
}
