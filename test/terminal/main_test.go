//go:build integration

package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	m.Run()
	process.RemoveBinary()
}

// shell is a bash in a terminal.
type shell struct {
	t           *testing.T
	socket, dir string
}

// newShell starts a bash in a terminal of a size, in an empty directory, with sequins in its path and with more variables.
func newShell(t *testing.T, width, height int, env ...string) *shell {
	t.Helper()
	s := &shell{t: t, socket: filepath.Join(t.TempDir(), "tmux"), dir: t.TempDir()}
	bin := t.TempDir()
	expect.NoError(t, os.Symlink(process.Binary(t), filepath.Join(bin, "sequins")))
	rc := filepath.Join(bin, "rc")
	text := "PS1='$ '\nHISTFILE=\nexport PATH=" + bin + ":$PATH\n"
	for _, e := range env {
		text += "export " + e + "\n"
	}
	expect.NoError(t, os.WriteFile(rc, []byte(text), 0o600))
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", s.dir, "exec bash --rcfile "+rc)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal shows\n%s", s.screen())
		}
		s.tmux("kill-server")
	})
	s.waitFor("a prompt", func(screen string) bool { return strings.HasPrefix(screen, "$") })
	return s
}

// tmux runs a command of tmux and returns what it prints.
func (s *shell) tmux(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// screen returns what is on the terminal; lines that it has wrapped are one.
func (s *shell) screen() string {
	s.t.Helper()
	return s.tmux("capture-pane", "-p", "-J")
}

// keys types keys by their names for tmux; text is typed as it is.
func (s *shell) keys(keys ...string) { s.tmux(append([]string{"send-keys"}, keys...)...) }

// line types a line.
func (s *shell) line(text string) {
	s.tmux("send-keys", "-l", text)
	s.keys("Enter")
}

// resize changes the size of the terminal.
func (s *shell) resize(width, height int) {
	s.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// waitFor waits until the terminal shows something.
func (s *shell) waitFor(what string, ok func(screen string) bool) {
	s.t.Helper()
	process.Eventually(s.t, what, func() bool { return ok(s.screen()) })
}

// shows waits until the terminal shows all of these texts.
func (s *shell) shows(texts ...string) {
	s.t.Helper()
	s.waitFor(strings.Join(texts, ", "), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// example starts a node that serves the example of the documentation, also as the database users.
func example(t *testing.T, addr string) (*process.Node, process.Config) {
	t.Helper()
	source := t.TempDir()
	words := os.DirFS(filepath.Join(process.Root(), "docs", "example", "words"))
	for _, db := range []string{"words", "users"} {
		expect.NoError(t, os.CopyFS(filepath.Join(source, db), words))
	}
	c := process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Addr: addr}
	n := process.Serve(t, c, "words", "2026-01-31")
	n.WaitCurrent(t, "users", "2026-01-31")
	return n, c
}
