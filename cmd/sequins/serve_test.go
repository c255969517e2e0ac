package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/config"
	"sequins/sequencefile"
	"sequins/shard"
)

// process is a running sequins, with what it has said so far.
type process struct {
	t   *testing.T
	cmd *exec.Cmd

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced at each line
	done  chan struct{} // closed when it has said its last
}

// start starts a command and follows one of its streams: what it logs, or for the demo what it prints.
func start(t *testing.T, cmd *exec.Cmd, stream func() (io.ReadCloser, error)) *process {
	t.Helper()
	out, err := stream()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, more: make(chan struct{}), done: make(chan struct{})}
	go p.follow(out)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // if it has not ended yet
		<-p.done
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the process said:\n%s", strings.Join(p.said(), "\n"))
		}
	})
	return p
}

func (p *process) follow(out io.Reader) {
	defer close(p.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *process) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

const patience = time.Minute

// waitFor waits for a line that matches, and returns the parts in parentheses.
func (p *process) waitFor(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for next := 0; ; {
		p.mu.Lock()
		fresh, more := p.lines[next:], p.more
		next = len(p.lines)
		p.mu.Unlock()
		for _, line := range fresh {
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		}
		select {
		case <-more:
		case <-p.done:
			if len(p.said()) == next {
				p.t.Fatalf("ended without a line like %s", pattern)
			}
		case <-deadline:
			p.t.Fatalf("no line like %s", pattern)
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits for the end, and returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("did not end")
	}
	_ = p.cmd.Wait() // the exit code says it
	return p.cmd.ProcessState.ExitCode()
}

// served is a process that serves, and where.
type served struct {
	*process
	base string
}

// startServer starts a server in a directory; it gets a port of its own.
func startServer(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	cmd := command(t, append([]string{"--bind", "127.0.0.1:0"}, args...)...)
	cmd.Dir = dir
	s := &served{process: start(t, cmd, cmd.StderrPipe)}
	s.base = "http://" + s.waitFor(`msg=serving address=(\S+)`)[1]
	return s
}

// get makes a request and returns the response with its body.
func (s *served) get(path string) (*http.Response, string) {
	s.t.Helper()
	resp, err := http.Get(s.base + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(body)
}

// await asks until something about the answer is as it should be.
func (s *served) await(path, what string, ok func(*http.Response, string) bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		resp, body := s.get(path)
		if ok(resp, body) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s never had %s; the last answer was %s %v %.200s", path, what, resp.Status, resp.Header, body)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (s *served) awaitVersion(path, version string) {
	s.t.Helper()
	s.await(path, "version "+version, func(r *http.Response, _ string) bool {
		return r.StatusCode == http.StatusOK && r.Header.Get("X-Sequins-Version") == version
	})
}

const demoPath = "/" + demoDB + "/red-wool-scarf"

// demoSource writes the demo's first version below dir, and returns the source's path.
func demoSource(t *testing.T, dir string) string {
	t.Helper()
	source := filepath.Join(dir, "source")
	if _, err := writeDemoVersion(source, demoFirst); err != nil {
		t.Fatal(err)
	}
	return source
}

// From relative paths on the command line alone, to an orderly end; and again from what is in the store.
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
		s.signal(syscall.SIGTERM)
		if code := s.wait(); code != exitOK {
			t.Errorf("exit code %d after SIGTERM", code)
		}
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
expvars = false
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
	for path, want := range map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/debug/vars": 404} {
		if resp, _ := debug.get(path); resp.StatusCode != want {
			t.Errorf("%s of the debug listener: %s, want %d", path, resp.Status, want)
		}
	}
	s.signal(syscall.SIGINT)
	if code := s.wait(); code != exitOK {
		t.Errorf("exit code %d after SIGINT", code)
	}
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
	writeFile(t, conf, content+"content_type = \"application/json\"\nmax_parallel_loads = 3\n")
	s.signal(syscall.SIGHUP)
	s.waitFor(`looking for new versions" changed=\[content_type\]`)
	s.waitFor(`need a restart" keys=\[max_parallel_loads\]`)
	s.await(demoPath, "the new content type", func(r *http.Response, _ string) bool {
		return r.Header.Get("Content-Type") == "application/json"
	})

	// A file that is not good changes nothing, and new versions are found all the same.
	if _, err := writeDemoVersion(source, demoSecond); err != nil {
		t.Fatal(err)
	}
	writeFile(t, conf, content+"content_type = 1\n")
	s.signal(syscall.SIGHUP)
	s.waitFor(`level=ERROR msg="SIGHUP: the configuration is not good; the old one stays" error="sequins.conf:3: content_type`)
	s.awaitVersion(demoPath, demoSecond)
	if resp, _ := s.get(demoPath); resp.Header.Get("Content-Type") != "application/json" {
		t.Error("a bad file changed the content type")
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// largeSource writes a database with one value that no socket buffer holds.
func largeSource(t *testing.T, dir string) (size int64) {
	t.Helper()
	writeFile(t, filepath.Join(dir, "source", "db", "1", "part-00000"), "")
	f, err := os.Create(filepath.Join(dir, "source", "db", "1", "part-00000"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := sequencefile.NewWriter(f, sequencefile.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 64<<20)
	if err := w.Append([]byte("large"), value); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return int64(len(value))
}

// inFlight begins a request for the large value and reads a little of the answer.
func (s *served) inFlight() *http.Response {
	s.t.Helper()
	s.awaitVersion("/db/large", "1")
	resp, err := http.Get(s.base + "/db/large")
	if err != nil {
		s.t.Fatal(err)
	}
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
		"port in use":      {[]string{"-r", source, "-l", store + "2", "-b", address}, "sequins: bind: cannot listen on " + address + ": address already in use"},
		"debug port":       {[]string{"-r", source, "-l", store + "2", "-b", "127.0.0.1:0", "--debug-bind", address}, "sequins: debug.bind: cannot listen on " + address},
		"bad file":         {[]string{"--config", filepath.Join(dir, "bad.conf")}, "sequins: " + dir + "/bad.conf:2: local_store: \"here\" is not an absolute path"},
		"no such file":     {[]string{"--config", "/nowhere.conf", "-r", source}, "sequins: reading the configuration: open /nowhere.conf: no such file"},
		"no file":          {nil, "sequins: there is no configuration: neither sequins.conf nor /etc/sequins.conf exists"},
		"bad flag value":   {[]string{"-r", source, "-b", "nowhere"}, "sequins: --bind: \"nowhere\" is not an address of the form host:port"},
		"store in source":  {[]string{"-r", source, "-l", source + "/store"}, "sequins: --local-store: "},
		"store is a file":  {[]string{"-r", source, "-l", filepath.Join(dir, "file"), "-b", "127.0.0.1:0"}, "sequins: local_store: opening the store: "},
		"unknown source":   {[]string{"-r", "gs://x/y"}, "sequins: --source: \"gs://x/y\" is of none of the kinds"},
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

func TestDemo(t *testing.T) {
	// The usual port is taken: by this test, or by somebody else.
	if ln, err := net.Listen("tcp", "127.0.0.1:9599"); err == nil {
		defer ln.Close()
	}
	cmd := command(t, "demo", "--pause", "1ms")
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	p := start(t, cmd, cmd.StdoutPipe)
	p.waitFor("serving version " + demoFirst)
	for _, path := range []string{"/products/red-wool-scarf", "/products/blue-oak-chair"} {
		resp, err := http.Get(p.waitFor(`curl (?:-i )?(http://127\.0\.0\.1:\d+` + path + `)$`)[1])
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s, which the demo suggests: %s", path, resp.Status)
		}
	}
	p.waitFor(`upgraded: [1-9]\d* answers from 2026-01-30, then [1-9]\d* from 2026-01-31; none failed`)
	p.waitFor(`\^C ends this`)
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

// Whatever ends the demo early, nothing is left.
func TestDemoCutShort(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		cmd := command(t, "demo", "--bind", "127.0.0.1:0", "--pause", "1h")
		temp := t.TempDir()
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
		p := start(t, cmd, cmd.StdoutPipe)
		p.waitFor("in 1h0m0s there will be a second version")
		p.signal(signal)
		if code := p.wait(); code != exitOK {
			t.Errorf("exit code %d after %v", code, signal)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary directory: %v, %v", left, err)
		}
	}
	sequins(t, "demo", "--bind", "nowhere").wants(t, exitFailure, "sequins: bind: \"nowhere\" is not an address")
}

func TestDemoOnATakenAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	sequins(t, "demo", "--bind", ln.Addr().String()).wants(t, exitFailure, "sequins: bind: cannot listen on ")
}

// The words and limits that the configuration accepts are those of the packages that they go to.
func TestConfigurationAgreesWithWhatItIsFor(t *testing.T) {
	for _, name := range config.Compressions {
		if c, err := blocks.ParseCompression(name); err != nil || c.String() != name {
			t.Errorf("compression %s: %v, %v", name, c, err)
		}
	}
	for _, name := range config.Partitioners {
		if p, err := shard.ParsePartitioner(name); name != "auto" && (err != nil || p.String() != name) {
			t.Errorf("partitioner %s: %v, %v", name, p, err)
		}
	}
	if config.MinBlockSize != blocks.MinBlockSize || config.MaxBlockSize != blocks.MaxBlockSize || config.Default().Storage.BlockSize != blocks.DefaultBlockSize {
		t.Error("the limits of block_size differ from those of blocks")
	}
	c := config.Default()
	c.DB = map[string]config.DB{"x": {Compression: "zstd", BlockSize: 512, RequireSuccessFile: true, Partitioner: "spark", AllowEmpty: true}}
	x, other := loadOptions(&c, "x"), loadOptions(&c, "other")
	if x.Compression != blocks.Zstd || x.BlockSize != 512 || !x.RequireSuccess || !x.AllowEmpty || x.Partitioner != "spark" || x.Memory != 256<<20 {
		t.Errorf("options of a database of its own: %+v", x)
	}
	if other.Compression != blocks.Snappy || other.BlockSize != 4096 || other.RequireSuccess || other.AllowEmpty || other.Partitioner != "auto" {
		t.Errorf("options of any other database: %+v", other)
	}
}
