package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
)

// process is a running sequins, with its output so far.
type process struct {
	t   *testing.T
	cmd *exec.Cmd

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced at each line
	done  chan struct{} // closed at the end of the output
}

// start starts a command and follows one of its streams: what it logs, or for the demo what it prints.
func start(t *testing.T, cmd *exec.Cmd, stream func() (io.ReadCloser, error)) *process {
	t.Helper()
	out, err := stream()
	expect.NoError(t, err)
	expect.NoError(t, cmd.Start())
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
	expect.NoError(p.t, p.cmd.Process.Signal(s))
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

// stop sends a signal and checks that the process ends well.
func (p *process) stop(s os.Signal) {
	p.t.Helper()
	p.signal(s)
	if code := p.wait(); code != exitOK {
		p.t.Errorf("exit code %d after %v", code, s)
	}
}

// served is a process that serves, and where.
type served struct {
	*process
	base  string
	token string // which requests show, if any
}

// ask makes a request.
func (s *served) ask(path string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.base+path, nil)
	expect.NoError(s.t, err)
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := http.DefaultClient.Do(req)
	expect.NoError(s.t, err)
	return resp
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
	resp := s.ask(path)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	expect.NoError(s.t, err)
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

// demoSource writes the demo's first version below dir, and returns the source's path.
func demoSource(t *testing.T, dir string) string {
	t.Helper()
	source := filepath.Join(dir, "source")
	_, err := writeDemo(source, demoFirst)
	expect.NoError(t, err)
	return source
}
