//go:build integration

package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
)

// empty empties the line and the screen.
func (s *shell) empty() {
	s.t.Helper()
	s.keys("C-e", "C-u", "C-l")
	s.waitFor("a prompt alone", func(screen string) bool { return strings.TrimSpace(screen) == "$" })
}

// complete types the beginning of a command and the key that completes it, until the line is as wanted.
func (s *shell) complete(typed, want string) {
	s.t.Helper()
	s.empty()
	s.tmux("send-keys", "-l", typed)
	s.keys("Tab")
	s.waitFor(want, func(screen string) bool { return strings.TrimSpace(screen) == "$ "+want })
}

// completing starts a shell that completes.
func completing(t *testing.T) *shell {
	t.Helper()
	s := newShell(t, 160, 20)
	s.line(". /usr/share/bash-completion/bash_completion; . <(sequins completion bash); echo ready")
	s.shows("\nready")
	return s
}

// bash completes commands and flags, and no files where none are meant.
func TestCompletion(t *testing.T) {
	s := completing(t)
	s.complete("sequins sta", "sequins status")
	s.complete("sequins get --esc", "sequins get --escaped")
	expect.NoError(t, os.WriteFile(filepath.Join(s.dir, "words.txt"), nil, 0o600))
	s.complete("sequins scan wo", "sequins scan wo")
	s.complete("sequins cat wo", "sequins cat words.txt")
}
