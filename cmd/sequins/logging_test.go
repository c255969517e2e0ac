package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// SIGHUP changes the level and opens the request log anew, and says what it cannot change.
func TestReloadOfLogs(t *testing.T) {
	dir := t.TempDir()
	demoSource(t, dir)
	conf, requests := filepath.Join(dir, "sequins.conf"), filepath.Join(dir, "requests.log")
	write := func(level, format, sample string) {
		t.Helper()
		writeFile(t, conf, "source = \""+dir+"/source\"\nlocal_store = \""+dir+"/store\"\n[log]\nlevel = \""+level+"\"\nformat = \""+format+
			"\"\n[debug]\nrequest_log_enable = true\nrequest_log_file = \""+requests+"\"\nrequest_log_sample = "+sample+"\n")
	}
	write("info", "json", "1")
	cmd := command(t, "--bind", "127.0.0.1:0", "--config", conf)
	cmd.Dir = dir
	s := &served{process: start(t, cmd, cmd.StderrPipe)}
	s.base = "http://" + s.waitFor(`"msg":"serving","address":"([^"]+)"`)[1]
	s.awaitVersion(demoPath, demoFirst)
	s.waitFor(`"msg":"version active","db":"` + demoDB + `","version":"` + demoFirst + `","after":[0-9.]+`)

	expect.NoError(t, os.Rename(requests, requests+".1"))
	write("debug", "json", "1")
	s.signal(syscall.SIGHUP)
	s.waitFor(`"changed":\["log.level"\]`)
	s.get(demoPath + "?rotated")
	expect.Eventually(t, "a line in the new request log", func() bool {
		b, err := os.ReadFile(requests)
		return err == nil && strings.Contains(string(b), " 200 GET "+demoPath+" ")
	})
	if b, err := os.ReadFile(requests + ".1"); err != nil || !strings.Contains(string(b), " 200 GET "+demoPath+" ") {
		t.Errorf("the old request log: %s, %v", b, err)
	}
	write("error", "text", "7")
	s.signal(syscall.SIGHUP)
	s.waitFor(`"changed":\["log.level","debug.request_log_sample"\]`)
	s.waitFor(`"keys":\["log.format"\]`)
	s.await("/", "the key that needs a restart", func(_ *http.Response, body string) bool {
		return strings.Contains(body, "log.format")
	})
	s.signal(syscall.SIGTERM)
	s.wait()
	if said := s.said(); strings.Contains(said[len(said)-1], "shut down") {
		t.Errorf("at level error it says %s", said[len(said)-1])
	}
}

// A request log that cannot be opened anew stays the one that it was.
func TestRequestLogStaysOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "requests.log")
	if _, err := openRequestLog(path); err == nil || !strings.Contains(err.Error(), "debug.request_log_file") {
		t.Errorf("without a directory: %v", err)
	}
	writeFile(t, path, "")
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
