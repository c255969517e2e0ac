//go:build integration

package terminal

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
)

// Tables are plain text on a terminal, too.
func TestTables(t *testing.T) {
	n, c := example(t, "")
	expect.NoError(t, os.MkdirAll(filepath.Join(c.Source, "words", "2026-02-01", "_temporary"), 0o755))
	s := newShell(t, 200, 40)
	s.line("sequins status --server " + n.Addr + "; sequins versions --source " + c.Source)
	s.shows("DISK FREE", "COMPLETE", "2026-02-01", "no: there is a _temporary: a job is writing")
}

// What takes longer than a second shows that on a terminal, and nothing on a pipe.
func TestProgress(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer silent.Close()
	s := newShell(t, 120, 20)
	s.line("sequins status --server " + silent.Addr().String())
	s.shows("\nasking http://" + silent.Addr().String())
	s.shows("has not answered within 10s")
	if screen := s.screen(); strings.Contains(screen, "asking") {
		t.Errorf("the progress stays:\n%s", screen)
	}
	s.line("clear; sequins status --server " + silent.Addr().String() + " 2>&1 | od -c > printed; cat printed")
	s.shows("a   n   s   w   e   r   e   d")
	printed, err := os.ReadFile(filepath.Join(s.dir, "printed"))
	if err != nil || strings.Contains(string(printed), "a   s   k   i   n   g") || strings.Contains(string(printed), "033") {
		t.Errorf("%v, a pipe gets\n%s", err, printed)
	}
}
