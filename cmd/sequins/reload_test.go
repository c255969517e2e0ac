package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// awaitContentType waits until the demo's value has a content type.
func (s *served) awaitContentType(want string) {
	s.t.Helper()
	s.await(demoPath, "the content type "+want, func(r *http.Response, _ string) bool { return r.Header.Get("Content-Type") == want })
}

// debug returns the server's debug listener.
func (s *served) debug() *served {
	return &served{process: s.process, base: "http://" + s.waitFor(`msg="serving metrics" address=(\S+)`)[1]}
}

// refuses checks that a reload by request is refused for a reason, that the status and the metrics say so, and that the former
// settings stay.
func (s *served) refuses(reason, contentType string) {
	s.t.Helper()
	if code, body := s.post("/-/reload"); code != 500 || !strings.Contains(body, reason) {
		s.t.Errorf("answered %d %s; want %q", code, body, reason)
	}
	s.await("/", "reload_error", func(_ *http.Response, body string) bool {
		return strings.Contains(body, `"reload_error":`) && strings.Contains(body, reason)
	})
	if _, body := s.debug().get("/metrics"); !strings.Contains(body, "\nsequins_config_last_reload_successful 0\n") {
		s.t.Error("the metrics do not say that the reload has failed")
	}
	if resp, _ := s.get(demoPath); resp.Header.Get("Content-Type") != contentType {
		s.t.Errorf("content type %q", resp.Header.Get("Content-Type"))
	}
}

// writeRecords writes a version of records with different keys: record0, record1 and so on.
func writeRecords(t *testing.T, source, version string, n int) {
	t.Helper()
	path := filepath.Join(source, "gated", version, "part-00000")
	sequencefiles.WriteFile(t, path, sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		for i := range n {
			add(fmt.Sprintf("record%d", i), "x")
		}
	})
}

// A reload reads the file that the start has read. Without it the settings stay, though the flags would be enough to start.
func TestReloadWithoutTheFile(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	writeRecords(t, source, "1", 3)
	conf := filepath.Join(dir, "sequins.conf")
	const content = "settle = \"0s\"\n[db.gated.gate]\nmin_records = 3\n"
	writeFile(t, conf, "content_type = \"text/plain\"\n"+content)
	s := startServer(t, dir, "--source", "source", "--local-store", "store", "--debug-bind", "127.0.0.1:0")
	s.awaitVersion(demoPath, demoFirst)
	s.awaitContentType("text/plain")
	s.awaitVersion("/gated/record0", "1")
	writeRecords(t, source, "2", 1)
	s.post("/-/refresh")
	s.waitFor(`msg="version held" db=gated version=2`)

	expect.NoError(t, os.Rename(conf, conf+".away"))
	s.signal(syscall.SIGHUP)
	s.waitFor(`level=ERROR msg="reload: the configuration is not good; the old one stays" error="reading the configuration: .*sequins.conf: no such file`)
	s.refuses("sequins.conf: no such file or directory", "text/plain")

	writeFile(t, conf, "content_type = \"application/json\"\n"+content)
	if code, body := s.post("/-/reload"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	s.awaitContentType("application/json")
	if resp, _ := s.get("/gated/record0"); resp.Header.Get("X-Sequins-Version") != "1" {
		t.Errorf("a version that was held is served: %v", resp.Header)
	}
	s.stop(syscall.SIGTERM)
}

// A node that was started without a file reads none later.
func TestReloadOfANodeWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	demoSource(t, dir)
	s := startServer(t, dir, "--source", "source", "--local-store", "store", "--debug-bind", "127.0.0.1:0")
	s.awaitVersion(demoPath, demoFirst)
	writeFile(t, filepath.Join(dir, "sequins.conf"), `content_type = "text/plain"`)
	if code, body := s.post("/-/reload"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if resp, _ := s.get(demoPath); resp.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("content type %q", resp.Header.Get("Content-Type"))
	}
	s.stop(syscall.SIGTERM)
}

// A start reads its configuration from a pipe; a reload, which would wait for it or find it empty, does not.
func TestConfigurationFromAPipe(t *testing.T) {
	dir := t.TempDir()
	demoSource(t, dir)
	cmd := command(t, "--config", "/dev/stdin", "--bind", "127.0.0.1:0", "--source", "source", "--local-store", "store", "--debug-bind", "127.0.0.1:0")
	cmd.Dir = dir
	cmd.Stdin = io.LimitReader(strings.NewReader(`content_type = "text/plain"`), 1000) // no file: the process gets a pipe
	s := &served{process: start(t, cmd, cmd.StderrPipe)}
	s.base = "http://" + s.waitFor(`msg=serving address=(\S+)`)[1]
	s.awaitVersion(demoPath, demoFirst)
	s.refuses("open /dev/stdin: not a regular file", "text/plain")
	s.stop(syscall.SIGTERM)
}

// Files that could be read for ever are refused, and the node goes on.
func TestReloadOfFilesThatBlock(t *testing.T) {
	dir := t.TempDir()
	demoSource(t, dir)
	conf, webhook, log := filepath.Join(dir, "sequins.conf"), filepath.Join(dir, "webhook"), filepath.Join(dir, "requests.log")
	writeFile(t, conf, "content_type = \"text/plain\"\n[events]\nwebhook_file = \""+webhook+"\"\n[debug]\nrequest_log_enable = true\nrequest_log_file = \""+log+"\"\n")
	writeFile(t, webhook, "http://127.0.0.1:1/")
	s := startServer(t, dir, "--source", "source", "--local-store", "store", "--debug-bind", "127.0.0.1:0")
	s.awaitVersion(demoPath, demoFirst)

	expect.NoError(t, os.Remove(webhook))
	expect.NoError(t, syscall.Mkfifo(webhook, 0o600))
	s.refuses("events.webhook_file: open "+webhook+": not a regular file", "text/plain")
	expect.NoError(t, os.Remove(webhook))
	writeFile(t, webhook, strings.Repeat("x", 1<<20+1))
	s.refuses("events.webhook_file: read "+webhook+": file exceeds its size limit of 1048576 bytes", "text/plain")
	writeFile(t, webhook, "http://127.0.0.1:1/")

	expect.NoError(t, os.Remove(log))
	expect.NoError(t, syscall.Mkfifo(log, 0o600))
	if code, body := s.post("/-/reload"); code != 500 || !strings.Contains(body, "debug.request_log_file: open "+log) {
		t.Errorf("%d %s", code, body)
	}
	expect.NoError(t, os.Remove(log))

	expect.NoError(t, os.Remove(conf))
	expect.NoError(t, syscall.Mkfifo(conf, 0o600))
	s.refuses("reading the configuration: open sequins.conf: not a regular file", "text/plain")
	s.stop(syscall.SIGTERM)
}
