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
	"sequins/test/sequencefiles"
)

const patience = time.Minute

const demoPath = "/" + demoDB + "/red-wool-scarf"

// A node starts with relative paths on the command line only and ends in order; then it starts again from its store.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	for range 2 {
		s := startServer(t, dir, "-r", "source", "-l", "./store")
		line := s.waitFor(`msg="sequins starts".*`)[0]
		for _, want := range []string{"version=", "source=" + source, "bind=127.0.0.1:0", "store=" + filepath.Join(dir, "store")} {
			if !strings.Contains(line, want) {
				t.Errorf("the first line has no %q: %s", want, line)
			}
		}
		s.awaitVersion(demoPath, demoFirst)
		if resp, body := s.get(demoPath); resp.Header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(body, `"red wool scarf"`) {
			t.Errorf("answered %v %s", resp.Header, body)
		}
		s.stop(syscall.SIGTERM)
	}
}

func TestConfigurationFileAndDebugListener(t *testing.T) {
	dir := t.TempDir()
	demoSource(t, dir)
	log := filepath.Join(dir, "requests.log")
	writeFile(t, filepath.Join(dir, "sequins.conf"), fmt.Sprintf(`
source = "/nowhere"
local_store = %q
content_type = "text/plain"
write_buffer_size = 4096
[debug]
bind = "127.0.0.1:0"
pprof = true
request_log_enable = true
request_log_file = %q
[db.products]
content_type = "application/json"
`, filepath.Join(dir, "store"), log))
	s := startServer(t, dir, "--source", "source")
	s.waitFor(`level=WARN msg="configuration: sequins.conf:5: write_buffer_size: is not used`)
	s.awaitVersion(demoPath, demoFirst)
	if resp, _ := s.get(demoPath); resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("content type %q", resp.Header.Get("Content-Type"))
	}
	debug := &served{process: s.process, base: "http://" + s.waitFor(`msg="serving metrics" address=(\S+)`)[1]}
	for path, want := range map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/debug/vars": 200} {
		if resp, _ := debug.get(path); resp.StatusCode != want {
			t.Errorf("%s of the debug listener: %s, want %d", path, resp.Status, want)
		}
	}
	s.stop(syscall.SIGINT)
	logged, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(logged), " 200 GET "+demoPath) {
		t.Errorf("request log (%v):\n%s", err, logged)
	}
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	conf := filepath.Join(dir, "sequins.conf")
	content := "local_store = \"" + filepath.Join(dir, "store") + "\"\nsource = \"" + source + "\"\n"
	writeFile(t, conf, content)
	s := startServer(t, dir)
	s.awaitVersion(demoPath, demoFirst)

	// A reloadable key, and one that is not.
	writeFile(t, conf, content+"content_type = \"application/json\"\nmax_parallel_loads = 3\n[http]\nallowed_origins = [\"*\"]\n[db."+demoDB+"]\ncache_control = \"max-age=7\"\n")
	s.signal(syscall.SIGHUP)
	s.waitFor(`looking for new versions" changed="\[content_type http.allowed_origins db\]"`)
	s.waitFor(`need a restart" keys=\[max_parallel_loads\]`)
	s.await(demoPath, "the new content type", func(r *http.Response, _ string) bool {
		return r.Header.Get("Content-Type") == "application/json" && r.Header.Get("Access-Control-Allow-Origin") == "*" && r.Header.Get("Cache-Control") == "max-age=7"
	})

	// A file that is not good changes nothing, and new versions are found all the same.
	_, err := writeDemo(source, demoSecond)
	expect.NoError(t, err)
	writeFile(t, conf, content+"content_type = 1\n")
	s.signal(syscall.SIGHUP)
	s.waitFor(`level=ERROR msg="reload: the configuration is not good; the old one stays" error="sequins.conf:3: content_type`)
	s.awaitVersion(demoPath, demoSecond)
	if resp, _ := s.get(demoPath); resp.Header.Get("Content-Type") != "application/json" {
		t.Error("a bad file changed the content type")
	}
	s.stop(syscall.SIGTERM)
}

// largeSource writes a database with one value that no socket buffer holds.
func largeSource(t *testing.T, dir string) (size int64) {
	t.Helper()
	value := strings.Repeat("\x00", 64<<20)
	sequencefiles.WriteFile(t, filepath.Join(dir, "source", "db", "1", "part-00000"), sequencefiles.WriterOptions{}, func(add func(key, value string)) { add("large", value) })
	return int64(len(value))
}

// inFlight begins a request for the large value and reads a little of the answer.
func (s *served) inFlight() *http.Response {
	s.t.Helper()
	s.awaitVersion("/db/large", "1")
	resp := s.ask("/db/large")
	s.t.Cleanup(func() { resp.Body.Close() })
	if _, err := io.CopyN(io.Discard, resp.Body, 1000); err != nil {
		s.t.Fatal(err)
	}
	return resp
}

func TestRequestsInFlightAreFinished(t *testing.T) {
	dir := t.TempDir()
	size := largeSource(t, dir)
	s := startServer(t, dir, "-r", "source", "-l", "store")
	resp := s.inFlight()
	s.signal(syscall.SIGTERM)
	s.waitFor(`msg="signal: finishing what is in flight`)
	if n, err := io.Copy(io.Discard, resp.Body); n != size-1000 || err != nil {
		t.Errorf("read %d bytes more, %v; want %d", n, err, size-1000)
	}
	if code := s.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestASecondSignalExitsAtOnce(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		dir := t.TempDir()
		largeSource(t, dir)
		s := startServer(t, dir, "-r", "source", "-l", "store")
		s.inFlight() // and never read on
		s.signal(syscall.SIGTERM)
		s.waitFor(`msg="signal: finishing what is in flight`)
		s.signal(signal)
		if code := s.wait(); code != want {
			t.Errorf("exit code %d after a second %v, want %d", code, signal, want)
		}
	}
}

func TestOneLineErrors(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	store := filepath.Join(dir, "store")
	s := startServer(t, dir, "-r", source, "-l", store)
	address := strings.TrimPrefix(s.base, "http://")
	writeFile(t, filepath.Join(dir, "bad.conf"), "source = \"/data\"\nlocal_store = \"here\"\n")
	writeFile(t, filepath.Join(dir, "file"), "")
	tests := map[string]struct {
		args []string
		want string
	}{
		"same store": {[]string{"-r", source, "-l", store, "-b", "127.0.0.1:0"},
			fmt.Sprintf("sequins: local_store: opening the store: %s/sequins.lock: store is in use by process %d", store, s.cmd.Process.Pid)},
		"port in use":      {[]string{"-r", source, "-l", store + "2", "-b", address}, "sequins: bind: listen tcp " + address + ": bind: address already in use"},
		"debug port":       {[]string{"-r", source, "-l", store + "2", "-b", "127.0.0.1:0", "--debug-bind", address}, "sequins: debug.bind: listen tcp " + address},
		"bad file":         {[]string{"--config", filepath.Join(dir, "bad.conf")}, "sequins: " + dir + "/bad.conf:2: local_store: \"here\" is not an absolute path"},
		"no such file":     {[]string{"--config", "/nowhere.conf", "-r", source}, "sequins: reading the configuration: open /nowhere.conf: no such file"},
		"no file":          {nil, "sequins: there is no configuration: neither sequins.conf nor /etc/sequins.conf exists"},
		"bad flag value":   {[]string{"-r", source, "-b", "nowhere"}, "sequins: --bind: \"nowhere\" is not an address of the form host:port"},
		"store in source":  {[]string{"-r", source, "-l", source + "/store"}, "sequins: --local-store: "},
		"store is a file":  {[]string{"-r", source, "-l", filepath.Join(dir, "file"), "-b", "127.0.0.1:0"}, "sequins: local_store: opening the store: "},
		"unknown source":   {[]string{"-r", "ftp://x/y"}, "sequins: --source: \"ftp://x/y\" is of none of the kinds"},
		"no such cluster":  {[]string{"-r", "hdfs:///y"}, "sequins: source: hdfs: hdfs:///y names no host, and there is no configuration with fs.defaultFS"},
		"request log file": {[]string{"--config", filepath.Join(dir, "log.conf"), "-b", "127.0.0.1:0"}, "sequins: debug.request_log_file: open "},
	}
	writeFile(t, filepath.Join(dir, "log.conf"), fmt.Sprintf(
		"source = %q\nlocal_store = %q\n[debug]\nrequest_log_enable = true\nrequest_log_file = \"/nowhere/log\"\n", source, store+"2"))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := sequins(t, test.args...)
			var said []string // besides the line with which every start begins
			for line := range strings.Lines(r.stderr) {
				if !strings.Contains(line, `msg="sequins starts"`) {
					said = append(said, line)
				}
			}
			r.stderr = strings.Join(said, "")
			r.wants(t, exitFailure, test.want)
		})
	}
	s.awaitVersion(demoPath, demoFirst) // the first one did not notice
}
