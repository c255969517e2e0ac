package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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
	expect.NoError(t, err)
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
		t.Errorf("%.100q, %v", b, err)
	}
	stdout, err := openRequestLog("stdout")
	if err != nil || stdout.reopen() != nil || stdout.Close() != nil {
		t.Errorf("stdout: %v", err)
	}
	if _, err := os.Stdout.Stat(); err != nil {
		t.Errorf("stdout was closed: %v", err)
	}
}

// A log whose lines nobody takes keeps nobody waiting: the lines beyond a limit are left out, the rest is written when it can be.
func TestLogIsStuck(t *testing.T) {
	reader, stderr, err := os.Pipe()
	expect.NoError(t, err)
	l := newLines(func(lines []byte) error { _, err := stderr.Write(lines); return err })
	line := []byte(strings.Repeat("x", 127) + "\n")
	began, n, left := time.Now(), 0, 0
	for ; left < 100; n++ {
		if _, err := l.Write(line); errors.Is(err, errLogStuck) {
			left++
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%d lines took %v", n, took)
	}
	all := make(chan int)
	go func() {
		b, _ := io.ReadAll(reader)
		all <- len(b)
	}()
	expect.Eventually(t, "lines to be taken again", func() bool { _, err := l.Write(line); n++; left++; return err == nil })
	l.Close()
	expect.NoError(t, stderr.Close())
	if got, want := <-all, (n-left+1)*len(line); got != want {
		t.Errorf("%d bytes were written, want %d", got, want)
	}
}

// A pipe of the request log that nobody reads can be replaced: the lines go to the new file.
func TestRequestLogIsStuck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.log")
	expect.NoError(t, syscall.Mkfifo(path, 0o600))
	if _, err := openRequestLog(path); !errors.Is(err, syscall.ENXIO) {
		t.Errorf("without a reader: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	expect.NoError(t, err)
	defer reader.Close()
	l, err := openRequestLog(path)
	expect.NoError(t, err)
	line := []byte(strings.Repeat("x", 127) + "\n")
	for range 1024 { // twice what the pipe has room for
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	expect.NoError(t, os.Remove(path))
	expect.NoError(t, l.reopen())
	expect.NoError(t, l.Close())
	if b, err := os.ReadFile(path); err != nil || len(b) < 512*len(line) || !bytes.HasSuffix(b, line) {
		t.Errorf("%d bytes in the new file, %v", len(b), err)
	}
}

// A disk that stays full is reported by every line, so that the request log says it once, not each time that it wrote nothing.
func TestLogStaysFull(t *testing.T) {
	l := newLines(func(lines []byte) error {
		if len(lines) == 0 {
			return nil // as the kernel
		}
		return syscall.ENOSPC
	})
	_, err := l.Write([]byte("x"))
	expect.NoError(t, err)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 10000 {
				if _, err := l.add([]byte("x")); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, errLogStuck) {
					t.Errorf("a line found a good disk: %v", err)
					return
				}
			}
		})
	}
	writers.Wait()
	l.Close()
}

// The end waits for a reader that has paused, too.
func TestLogEndsAfterAPause(t *testing.T) {
	reader, stderr, err := os.Pipe()
	expect.NoError(t, err)
	l := newLines(func(lines []byte) error { _, err := stderr.Write(lines); return err })
	_, _ = l.Write(make([]byte, 65<<10)) // more than the pipe has room for
	read := make(chan struct{})
	time.AfterFunc(logPatience/4, func() {
		_, _ = io.CopyN(io.Discard, reader, 65<<10)
		close(read)
	})
	_, _ = l.Write([]byte("shut down\n"))
	l.Close()
	expect.NoError(t, stderr.Close())
	<-read // the last line is written as soon as there is room for it
	if b, err := io.ReadAll(reader); err != nil || string(b) != "shut down\n" {
		t.Errorf("%.100q, %v", b, err)
	}
}
