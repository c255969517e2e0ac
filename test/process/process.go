// Package process builds the sequins binary once for all test packages, and starts, signals and kills real processes of it, for
// tests of one node (test/single) and of clusters.
//
// A test describes a node with Config, starts it with Start, sends requests with Get, which uses the target as given,
// and waits with WaitFor, which polls a condition.
package process

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/once"
	"sequins/test/ports"
)

// Deadline bounds the wait for any condition, on a slow machine where so much runs that a load, which has the lowest
// priority, gets a few percent of a core.
const Deadline = 3 * time.Minute

var build struct {
	once sync.Once
	path string
	err  error
}

// Override is the environment variable with the path of a binary to test instead of one built from this tree.
const Override = "SEQUINS_TEST_BINARY"

// Binary builds cmd/sequins, unless that is done, and returns the path of the binary, which no later build replaces.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(Override); path != "" {
		build.once.Do(readSources)
		return path
	}
	build.once.Do(func() {
		readSources()
		dir, err := os.MkdirTemp("", "sequins-binary-")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "sequins")
		build.err = buildShared(build.path)
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// readSources makes the program's sources inputs of the test: go test reuses a cached result only if the files that the
// test has opened are unchanged.
func readSources() {
	filepath.WalkDir(Root(), func(path string, d os.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil:
			return filepath.SkipDir
		case d.IsDir() && path != Root() && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bench" || name == "docs"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			os.Stat(path)
		}
		return nil
	})
}

// buildShared builds cmd/sequins into a file that all test packages share, so that only the first one links it, and makes
// path another name of that file.
func buildShared(path string) error {
	shared := filepath.Join(Root(), ".cache", "tested-sequins")
	unlock, err := once.Lock(shared + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if err := Build(shared); err != nil {
		return err
	}
	if os.Link(shared, path) == nil {
		return nil
	}
	return Build(path) // it is on another file system
}

// Build builds cmd/sequins into a file with additional arguments of go build. It compiles as make build does, and make test what
// has no race detector, so that all use the same packages of Go's cache.
func Build(path string, args ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", path}, args...), "./cmd/sequins")...)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// OutputOf runs a command and returns what it prints; if it fails, the test does.
func OutputOf(t testing.TB, name string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, &stdout, &stderr)
	}
	return stdout.String()
}

// Parallel sets how many tests of this package run at a time, however few cores there are: most of what they do is wait.
func Parallel(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// RemoveBinary deletes what Binary built; call it at the end of TestMain.
func RemoveBinary() {
	if build.path != "" {
		os.RemoveAll(filepath.Dir(build.path))
	}
}

// Root returns the directory of the module: the nearest with its go.mod from the working directory of the first call. What the compiler
// says of files does not help: with -trimpath it is no path.
func Root() string { return root() }

var root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && bytes.HasPrefix(text, []byte("module sequins\n")) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
})

// Config describes one node. Source and Store are directories.
type Config struct {
	Source, Store string
	Addr, Debug   string   // addresses of the listeners; "" chooses a free port of 127.0.0.1
	Extra         string   // lines of sequins.conf before the first section
	Sections      string   // sections of sequins.conf, after keys of [debug]
	Header        string   // lines that end in \r\n, sent with every request except those of a Client
	Prefix        []string // command before the binary, such as taskset
	Binary        string   // "" for that of this tree
}

// Node is a running sequins process.
type Node struct {
	Addr, Debug string
	header      string // Config.Header
	Conf        string // path of its configuration
	cmd         *exec.Cmd
	log         expect.Output
	done        chan struct{}
	err         error
}

// FreeAddr returns an unused loopback address: see ports.Free.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, err := ports.Free()
	expect.NoError(t, err)
	return addr
}

// Start starts a node and waits until /livez answers. The node is killed when the test ends; its log is printed if the
// test has failed.
func Start(t testing.TB, c Config) *Node {
	t.Helper()
	n := Launch(t, c)
	n.WaitFor(t, "/livez answers", func() bool {
		r, err := n.TryGet("/livez")
		return err == nil && r.Code == 200
	})
	return n
}

// Launch starts a node without waiting for it.
func Launch(t testing.TB, c Config) *Node {
	t.Helper()
	n := &Node{Addr: c.Addr, Debug: c.Debug, header: c.Header, done: make(chan struct{})}
	for _, addr := range []*string{&n.Addr, &n.Debug} {
		if *addr == "" {
			*addr = FreeAddr(t)
		}
	}
	if c.Binary == "" {
		c.Binary = Binary(t)
	}
	n.Conf = filepath.Join(t.TempDir(), "sequins.conf")
	if !strings.Contains(c.Extra, "settle") {
		c.Extra = "settle = \"50ms\"\n" + c.Extra // enough for versions that are published by one rename
	}
	if !strings.Contains(c.Extra, "require_success_file") {
		c.Extra = "require_success_file = false\n" + c.Extra // the tests' damaged versions have none
	}
	text := fmt.Sprintf("source = %q\nlocal_store = %q\nbind = %q\n%s\n[debug]\nbind = %q\npprof = true\n%s\n", c.Source, c.Store, n.Addr, c.Extra, n.Debug, c.Sections)
	expect.NoError(t, os.WriteFile(n.Conf, []byte(text), 0o644))
	args := append(append([]string{}, c.Prefix...), c.Binary, "--config", n.Conf)
	n.cmd = exec.Command(args[0], args[1:]...)
	n.cmd.Stdout, n.cmd.Stderr = &n.log, &n.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig applies to the thread that started the process
	err := n.cmd.Start()
	runtime.UnlockOSThread()
	expect.NoError(t, err)
	go func() {
		n.err = n.cmd.Wait()
		fmt.Fprintf(&n.log, "%s: the process has ended: %s\n", time.Now().Format(time.RFC3339Nano), n.cmd.ProcessState)
		close(n.done)
	}()
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.Addr, tail(n.Log(), 20_000))
		}
	})
	return n
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// Log returns the output of the process so far.
func (n *Node) Log() string { return n.log.String() }

// PID returns the process id.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// Exited reports whether the process has ended.
func (n *Node) Exited() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// Kill kills the process with SIGKILL and waits for it.
func (n *Node) Kill() {
	n.cmd.Process.Kill()
	<-n.done
}

// Signal sends a signal to the process.
func (n *Node) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	expect.NoError(t, n.cmd.Process.Signal(s))
}

// Stop sends SIGTERM and returns the exit code.
func (n *Node) Stop(t testing.TB) int {
	t.Helper()
	n.Signal(t, syscall.SIGTERM)
	return n.WaitExit(t)
}

// WaitExit waits for the process to end and returns its exit code.
func (n *Node) WaitExit(t testing.TB) int {
	t.Helper()
	select {
	case <-n.done:
	case <-time.After(Deadline):
		t.Fatalf("%s does not end", n.Addr)
	}
	var exit *exec.ExitError
	if errors.As(n.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// WaitFor polls a condition until it holds, the process has ended, or Deadline has passed.
func (n *Node) WaitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Eventually(t, what, func() bool {
		if condition() {
			return true
		}
		if n.Exited() {
			t.Fatalf("the process ended while waiting for: %s: %v", what, n.err)
		}
		return false
	})
}

// Eventually polls a condition until it holds or Deadline has passed. The pauses grow: most conditions ask a node over a new
// connection, and many tests wait at a time.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	const longest = 50 * time.Millisecond
	end := time.Now().Add(Deadline)
	for pause := 5 * time.Millisecond; !condition(); pause = min(2*pause, longest) {
		if time.Now().After(end) {
			t.Fatalf("timed out after %v waiting for: %s", Deadline, what)
		}
		time.Sleep(pause)
	}
}

// WaitLog waits until the log contains a text.
func (n *Node) WaitLog(t testing.TB, text string) {
	t.Helper()
	n.WaitFor(t, "the log says "+text, func() bool { return strings.Contains(n.Log(), text) })
}

// LogHas reports whether a line of a log has all of some texts.
func LogHas(log string, texts ...string) bool {
	for line := range strings.Lines(log) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			return true
		}
	}
	return false
}
