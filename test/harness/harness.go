package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
)

const (
	// commandTimeout bounds one command. The longest in tests, a job of a million records, takes some 15 s.
	commandTimeout = 3 * time.Minute
	// quitTimeout bounds the orderly shutdown of servers; then the process is killed.
	quitTimeout = 30 * time.Second
)

// Harness is a running Java program (testdata/harness) in which a test starts real servers and jobs. It runs one
// command at a time.
type Harness struct {
	// Root is the directory of all files that the program writes without an explicit path. It is deleted with the test.
	Root string

	mu      sync.Mutex
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	replies chan string // closed when the program ends
	log     string      // file with its stderr
	broken  error       // why no more commands are possible
}

// Start is Open for a test, with which the program ends. Without Java or Maven the test fails.
func Start(t testing.TB) *Harness {
	t.Helper()
	h, err := Open(t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Open builds the program if its sources have changed and runs it. root is an empty directory for what it writes.
func Open(root string) (*Harness, error) {
	for tool, pkg := range map[string]string{"java": "openjdk-17-jdk-headless", "javac": "openjdk-17-jdk-headless", "mvn": "maven"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("harness: %s is not installed; on Debian it is in the package %s", tool, pkg)
		}
	}
	dir := filepath.Join(testdata(), "harness")
	if err := build(dir); err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	h := &Harness{Root: root, replies: make(chan string)}
	if err := h.start(dir); err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	ready, err := h.next(time.After(commandTimeout))
	if err == nil && !strings.HasPrefix(ready, "OK ready=1 ") {
		err = fmt.Errorf("its first words are %q", ready)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("harness: it does not start: %w\n%s", err, h.logTail()), h.Close())
	}
	return h, nil
}

func (h *Harness) start(dir string) (err error) {
	h.log = filepath.Join(h.Root, "stderr.log")
	stderr, err := os.Create(h.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stderr.Close()) }() // the program has its own copy
	h.cmd = exec.Command(filepath.Join(dir, "run.sh"), h.Root)
	h.cmd.Stderr = stderr
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(h.replies)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			h.replies <- s.Text()
		}
	}()
	return nil
}

// Do runs one command, "verb key=value …", and returns the reply's keys and values. The test fails if the reply is an error.
func (h *Harness) Do(t testing.TB, command string) map[string]string {
	t.Helper()
	r, err := h.Try(command)
	if err != nil {
		t.Fatalf("harness: %v\n%s", err, h.logTail())
	}
	return r
}

// Try is Do for a command that may fail.
func (h *Harness) Try(command string) (map[string]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken != nil {
		return nil, fmt.Errorf("%s: %w", command, h.broken)
	}
	if strings.ContainsAny(command, "\r\n") {
		return nil, fmt.Errorf("a command of several lines: %q", command)
	}
	if _, err := io.WriteString(h.stdin, command+"\n"); err != nil {
		h.broken = fmt.Errorf("the program is gone: %w", err)
		return nil, fmt.Errorf("%s: %w", command, h.broken)
	}
	reply, err := h.next(time.After(commandTimeout))
	if err != nil {
		h.broken = err
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return parse(command, reply)
}

func parse(command, reply string) (map[string]string, error) {
	words := strings.Fields(reply)
	if len(words) == 0 || words[0] != "OK" {
		return nil, fmt.Errorf("%s: %s", command, reply)
	}
	r := make(map[string]string, len(words)-1)
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		r[k] = v
	}
	return r, nil
}

func (h *Harness) next(timeout <-chan time.Time) (string, error) {
	select {
	case line, ok := <-h.replies:
		if !ok {
			return "", errors.New("the program has ended")
		}
		return line, nil
	case <-timeout:
		return "", errors.New("no reply in time")
	}
}

// Close ends the program, by its own will if it can, and waits until it is gone.
func (h *Harness) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.stdin.Close() // it may be closed already
	kill := time.AfterFunc(quitTimeout, func() { _ = h.cmd.Process.Kill() })
	defer kill.Stop()
	for range h.replies { // late replies are ignored
	}
	h.broken = errors.New("the program was stopped")
	if err := h.cmd.Wait(); err != nil {
		return fmt.Errorf("harness: %w\n%s", err, h.logTail())
	}
	return nil
}

func (h *Harness) logTail() []byte {
	b, err := os.ReadFile(h.log)
	if err != nil {
		return []byte(err.Error())
	}
	return lastLines(b, 40)
}
