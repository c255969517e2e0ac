package main

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// What config prints is a file that means the same, with where each key is from.
func TestConfigShow(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "sequins.conf")
	writeFile(t, conf, "source = \"/data\"\n[s3]\naccess_key_id = \"A\"\nsecret_access_key = \"hunter2\"\n[db.words]\npartitioner = \"spark\"\n")
	t.Setenv("SEQUINS_LOAD_MEMORY", "64MiB")
	t.Setenv("SEQUINS_LOAD_MEMROY", "64MiB")
	r := sequins(t, "config", "--config", conf, "--bind", ":1")
	for _, want := range []string{"source = '/data'  # " + conf + ":1\n", "bind = ':1'  # --bind\n", "\n[load]\nmemory = '64MiB'  # SEQUINS_LOAD_MEMORY\n",
		"secret_access_key = '***'  # ", "\n[db.words]\npartitioner = 'spark'  # " + conf + ":6\n", "settle = '30s'  # default\n"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
	if r.code != exitOK || strings.Contains(r.stdout, "hunter2") || r.stderr != "warning: SEQUINS_LOAD_MEMROY: sets no key; did you mean SEQUINS_LOAD_MEMORY?\n" {
		t.Errorf("exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	again := filepath.Join(dir, "again.conf")
	writeFile(t, again, r.stdout)
	if r := sequins(t, "check-config", again); r.code != exitOK {
		t.Errorf("what was printed is not good: %s", r.stderr)
	}
	r = sequins(t, "config", "--config", conf, "--json")
	var all []struct {
		Key   string
		Value any
		From  string
	}
	if err := json.Unmarshal([]byte(r.stdout), &all); err != nil || len(all) < 60 || all[0].Key != "source" || all[0].Value != "/data" || all[0].From != conf+":1" {
		t.Errorf("%v: %.300s", err, r.stdout)
	}
	writeFile(t, conf, "bind = 1")
	if r := sequins(t, "config", "--config", conf); r.code != exitFailure || !strings.Contains(r.stderr, conf+":1: bind: must be a string") || r.stdout != "" {
		t.Errorf("exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// A node needs no file and no flags if the environment has the keys.
func TestServeFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SEQUINS_SOURCE", demoSource(t, dir))
	t.Setenv("SEQUINS_LOCAL_STORE", filepath.Join(dir, "store"))
	t.Setenv("SEQUINS_CONTENT_TYPE", "application/json")
	s := startServer(t, t.TempDir())
	s.awaitVersion(demoPath, demoFirst)
	if resp, _ := s.get(demoPath); resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("content type %q", resp.Header.Get("Content-Type"))
	}
}

// post makes a POST request to the debug listener.
func (s *served) post(path string, header ...string) (code int, body string) {
	s.t.Helper()
	base := "http://" + s.waitFor(`msg="serving metrics" address=(\S+)`)[1]
	req, err := http.NewRequest(http.MethodPost, base+path, nil)
	expect.NoError(s.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	expect.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	expect.NoError(s.t, err)
	return resp.StatusCode, string(text)
}

// Requests to the debug listener do what SIGHUP does, and say what came of it.
func TestReloadByRequest(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	conf := filepath.Join(dir, "sequins.conf")
	content := "local_store = \"" + filepath.Join(dir, "store") + "\"\nsource = \"" + source + "\"\n"
	writeFile(t, conf, content)
	s := startServer(t, dir, "--debug-bind", "127.0.0.1:0")
	s.awaitVersion(demoPath, demoFirst)

	writeFile(t, conf, content+"content_type = \"application/json\"\n")
	if code, body := s.post("/-/reload"); code != 200 || body != "reloaded\n" {
		t.Errorf("%d %s", code, body)
	}
	s.await(demoPath, "the new content type", func(r *http.Response, _ string) bool {
		return r.Header.Get("Content-Type") == "application/json"
	})
	writeFile(t, conf, content+"content_type = 1\n")
	if code, body := s.post("/-/reload"); code != 500 || !strings.Contains(body, "sequins.conf:3: content_type: must be a string") {
		t.Errorf("%d %s", code, body)
	}
	const refused = "\nThe last reload of the configuration has failed: sequins.conf:3: content_type: must be a string"
	if r := sequins(t, "status", "--server", s.base); r.code != exitUnhealthy || !strings.Contains(r.stdout, refused) {
		t.Errorf("exit code %d, %s", r.code, r.stdout)
	}
	if code, body := s.post("/-/reload", "Origin", "http://elsewhere.example", "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Errorf("from another site: %d %s", code, body)
	}
	writeFile(t, conf, content+"max_parallel_loads = 3\n")
	if code, body := s.post("/-/reload"); code != 200 || body != "reloaded, but for what needs a restart: max_parallel_loads\n" {
		t.Errorf("%d %s", code, body)
	}
	s.await("/", "the key in the status", func(_ *http.Response, body string) bool {
		return strings.Contains(body, `"restart_keys":["max_parallel_loads"]`)
	})
	writeFile(t, conf, content)
	if code, body := s.post("/-/reload"); code != 200 || body != "reloaded\n" {
		t.Errorf("%d %s", code, body)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // the status is up to a second old
		r := sequins(t, "status", "--server", s.base)
		if r.code == exitOK && !strings.Contains(r.stdout, "configuration") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("exit code %d, %s", r.code, r.stdout)
		}
	}
	_, err := writeDemo(source, demoSecond)
	expect.NoError(t, err)
	if code, body := s.post("/-/refresh"); code != 200 || body != "looking for new versions\n" {
		t.Errorf("%d %s", code, body)
	}
	s.awaitVersion(demoPath, demoSecond)
	base := s.base
	s.base = "http://" + s.waitFor(`msg="serving metrics" address=(\S+)`)[1]
	if resp, _ := s.get("/-/refresh"); resp.StatusCode != 405 {
		t.Errorf("GET: %s", resp.Status)
	}
	s.base = base
}
