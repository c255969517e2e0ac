package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
)

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
