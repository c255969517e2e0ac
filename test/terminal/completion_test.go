//go:build integration

package terminal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/process"
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

// bash completes databases and versions from a node.
func TestCompletion(t *testing.T) {
	n, c := example(t, "")
	s := completing(t)
	s.complete("sequins sta", "sequins status")
	at := " --server " + n.Addr
	for typed, want := range map[string]string{
		"sequins get" + at + " wo":             "words",
		"sequins mget " + n.Addr + " us":       "users",
		"sequins scan" + at + " w":             "words",
		"sequins status " + n.Addr + " wor":    "words",
		"sequins diff" + at + " us":            "users",
		"sequins diff" + at + " users 2":       "2026-01-31",
		"sequins pin" + at + " words 2026":     "2026-01-31",
		"sequins approve" + at + " words 2026": "2026-01-31",
		"sequins rollback" + at + " wo":        "words",
	} {
		s.complete(typed, typed[:strings.LastIndex(typed, " ")+1]+want)
	}
	// Without --server, it is the node of sequins.conf.
	if err := os.WriteFile(filepath.Join(s.dir, "sequins.conf"), []byte(fmt.Sprintf("source = %q\nbind = %q\n", c.Source, n.Addr)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.complete("sequins versions wo", "sequins versions words")
	s.complete("sequins unpin us", "sequins unpin users")
	s.complete("sequins refresh wo", "sequins refresh wo")
}

// Without a node, a completion says nothing and does not hold people up.
func TestCompletionWithoutANode(t *testing.T) {
	s := completing(t)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	for _, addr := range []string{process.FreeAddr(t), strings.TrimPrefix(silent.URL, "http://")} {
		s.empty()
		began := time.Now()
		s.tmux("send-keys", "-l", "sequins get --server "+addr+" wo")
		s.keys("Tab")
		s.tmux("send-keys", "-l", "rds k") // bash reads it when the completion has ended
		s.waitFor("what was typed after it", func(screen string) bool {
			return strings.TrimSpace(screen) == "$ sequins get --server "+addr+" words k"
		})
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: it took %v", addr, took)
		}
	}
}
