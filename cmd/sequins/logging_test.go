package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
)

// SIGHUP as soon as a node is heard of is a reload, too.
func TestReloadDuringStart(t *testing.T) {
	dir := t.TempDir()
	cmd := command(t, "--bind", "127.0.0.1:0", "--source", demoSource(t, dir), "--local-store", filepath.Join(dir, "store"))
	cmd.Dir = dir
	p := start(t, cmd, cmd.StderrPipe)
	p.waitFor("sequins starts")
	p.signal(syscall.SIGHUP)
	p.waitFor("reload: looking for new versions")
	p.stop(syscall.SIGTERM)
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

// startWithLog starts a server whose log is a pipe, and returns the ends of the pipe when it serves.
func startWithLog(t *testing.T, dir string) (s *served, reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	expect.NoError(t, err)
	t.Cleanup(func() { _ = errors.Join(reader.Close(), writer.Close()) })
	cmd := command(t, "--bind", "127.0.0.1:0", "-r", "source", "-l", "store")
	cmd.Dir, cmd.Stderr = dir, writer
	s = &served{process: start(t, cmd, cmd.StdoutPipe)}
	for lines := bufio.NewScanner(reader); s.base == "" && lines.Scan(); {
		if _, address, serves := strings.Cut(lines.Text(), "msg=serving address="); serves {
			s.base = "http://" + address
		}
	}
	return s, reader, writer
}

// switchAndEnd expects a node to switch to a new version, and to end by a signal.
func (s *served) switchAndEnd(source string) {
	s.t.Helper()
	s.awaitVersion(demoPath, demoFirst)
	_, err := writeDemo(source, demoSecond)
	expect.NoError(s.t, err)
	s.signal(syscall.SIGHUP)
	s.awaitVersion(demoPath, demoSecond)
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != exitOK {
		s.t.Errorf("exit code %d", code)
	}
}

// A log that nobody reads keeps nobody waiting.
func TestLogThatNobodyReads(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	s, _, writer := startWithLog(t, dir)
	fd, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", writer.Fd()), os.O_WRONLY|syscall.O_NONBLOCK, 0) // for this process alone
	expect.NoError(t, err)
	defer syscall.Close(fd)
	for err == nil {
		_, err = syscall.Write(fd, []byte("\n"))
	}
	s.switchAndEnd(source)
}

// The end of what reads the log is not the end of the node.
func TestReaderOfTheLogEnds(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	s, reader, writer := startWithLog(t, dir)
	expect.NoError(t, errors.Join(writer.Close(), reader.Close()))
	s.switchAndEnd(source)
}
