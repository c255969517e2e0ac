//go:build integration

package copies

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sequins/test/process"
)

const (
	// settle is long enough for files that arrive a second apart on a busy machine.
	settle = 4 * time.Second
	// wholeWithin is settle, a refresh, and a load on a busy machine.
	wholeWithin = settle + time.Second + 45*time.Second
)

func TestMain(m *testing.M) {
	process.Parallel(12)
	m.Run()
	process.RemoveBinary()
}

// A scene is a node with a reader of a database, version 1 of which is served.
type scene struct {
	testing.TB
	node *process.Node
	*reader
	config process.Config
	old    version
}

// configure describes a node.
func configure(t testing.TB, source, sections string) process.Config {
	t.Helper()
	return process.Config{
		Source:   source,
		Store:    filepath.Join(t.TempDir(), "store"),
		Extra:    fmt.Sprintf("refresh_period = \"1s\"\nsettle = %q\nrequire_success_file = \"auto\"", settle),
		Sections: sections,
	}
}

// open starts a node whose source has version 1, and a reader when it is served.
func open(t testing.TB, c process.Config, old version) *scene {
	t.Helper()
	node := process.Serve(t, c, db, "1")
	s := &scene{TB: t, node: node, reader: read(t, node, db, old.keys()), config: c, old: old}
	node.WaitFor(t, "version 1 is read", func() bool { return s.whole(old.generation) })
	return s
}

// copied runs a copy that takes longer than settle.
func (s *scene) copied(what string, copy func()) {
	s.Helper()
	s.mark("%s begins", what)
	began := time.Now()
	copy()
	took := time.Since(began)
	s.mark("%s has ended", what)
	if took < settle {
		s.Errorf("%s took %v, which is less than settle: it shows nothing", what, took)
	}
}

// waitWhole waits until every answer is of a generation, after its last file has arrived, and says how long that took.
func (s *scene) waitWhole(generation int) {
	s.Helper()
	began := time.Now()
	tick := time.NewTicker(roundPause)
	defer tick.Stop()
	for !s.whole(generation) {
		if <-tick.C; time.Since(began) > wholeWithin {
			s.Fatalf("%v after its last file, the version is not served whole: %s", wholeWithin, s.state())
		}
	}
	s.Logf("served whole %.1f s after the last file", time.Since(began).Seconds())
}

// stay reads on for a while.
func (s *scene) stay(d time.Duration) { <-time.After(d) }

// judge fails the test if the reader has seen a wrong answer. Keys may be absent if part of a version had to be served.
func (s *scene) judge(partly bool) {
	s.Helper()
	s.stay(settle)
	s.node.WaitFor(s, "the status has no problem", s.healthy)
	s.end()
	if len(s.absent) > 0 && !partly {
		s.Errorf("keys that both versions have were absent:\n%s", strings.Join(s.absent, "\n"))
	}
	if len(s.back) > 0 {
		s.Errorf("older values after newer ones:\n%s", strings.Join(s.back, "\n"))
	}
	if len(s.wrong) > 0 {
		s.Errorf("wrong answers:\n%s", strings.Join(s.wrong, "\n"))
	}
}

var complaint = regexp.MustCompile(`(?m)^.*level=(WARN|ERROR).*$`)

// quiet fails the test if the node has warned of a version.
func (s *scene) quiet() {
	s.Helper()
	if lines := complaint.FindAllString(s.node.Log(), -1); len(lines) > 0 {
		s.Errorf("the log has warnings:\n%s", strings.Join(lines, "\n"))
	}
	if p := s.said(); p != "" {
		s.Errorf("the status has had problems:\n%s", p)
	}
}

// differs fails the test unless the log and the status have said that what is served of a version differs from the source.
func (s *scene) differs() {
	s.Helper()
	texts := map[string]string{"log": strings.Join(complaint.FindAllString(s.node.Log(), -1), "\n"), "status": s.said()}
	for where, text := range texts {
		if !strings.Contains(text, "files") || !strings.Contains(text, "source") || !regexp.MustCompile(`version[= ]2\b`).MatchString(text) {
			s.Errorf("the %s does not say that what is served of version 2 is not what the source has:\n%s", where, text)
		}
	}
}

// run runs a tool.
func run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// tool returns a command that ends with the test.
func tool(t testing.TB, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), name, args...)
}
