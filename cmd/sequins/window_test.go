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
	"time"

	"sequins/test/expect"
)

// A new version waits for a window that begins in two hours, which log, JSON, page and command line say; one of a database that may
// load at any time does not. SIGHUP with other windows ends the wait.
func TestLoadWindow(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	const urgent = "urgent"
	expect.NoError(t, os.CopyFS(filepath.Join(source, urgent), os.DirFS(filepath.Join(source, demoDB))))
	conf := filepath.Join(dir, "sequins.conf")
	begin := time.Now().UTC().Add(2 * time.Hour)
	write := func(window string) {
		writeFile(t, conf, fmt.Sprintf("local_store = %q\nsource = %q\n[load]\nwindow = %q\n[db.%s]\nload_window = \"\"\nload_priority = 1\n",
			filepath.Join(dir, "store"), source, window, urgent))
	}
	write(begin.Format("15:04") + "-" + begin.Add(time.Hour).Format("15:04") + " UTC")
	s := startServer(t, dir)
	s.awaitVersion(demoPath, demoFirst)
	s.waitFor(`msg="version active" db=` + urgent + ` version=` + demoFirst)

	_, err := writeDemo(source, demoSecond)
	expect.NoError(t, err)
	expect.NoError(t, os.CopyFS(filepath.Join(source, urgent, demoSecond), os.DirFS(filepath.Join(source, demoDB, demoSecond))))
	s.signal(syscall.SIGHUP)
	reason := "waits for the window that begins at " + begin.Format("15:04") + " UTC"
	s.waitFor(`msg="load postponed" db=` + demoDB + ` version=` + demoSecond + ` reason="` + reason)
	s.waitFor(`msg="version active" db=` + urgent + ` version=` + demoSecond)
	s.awaitVersion(demoPath, demoFirst)
	s.await("/", "the state", func(_ *http.Response, body string) bool {
		return strings.Contains(body, reason) && strings.Contains(body, "AVAILABLE")
	})
	r := sequins(t, "status", "--server", strings.TrimPrefix(s.base, "http://"))
	r.wants(t, exitOK)
	if !strings.Contains(r.stdout, "AVAILABLE") || !strings.Contains(r.stdout, reason) {
		t.Errorf("sequins status says:\n%s", r.stdout)
	}
	req, err := http.NewRequest(http.MethodGet, s.base+"/"+demoDB, nil)
	expect.NoError(t, err)
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	expect.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	expect.NoError(t, err)
	if !strings.Contains(string(page), "AVAILABLE") || !strings.Contains(string(page), reason) {
		t.Errorf("the page does not have the reason:\n%s", page)
	}

	write("00:00-24:00")
	s.signal(syscall.SIGHUP)
	s.waitFor(`looking for new versions" changed=\[load.window\]`)
	s.awaitVersion(demoPath, demoSecond)
	s.stop(syscall.SIGTERM)
}
