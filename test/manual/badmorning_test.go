//go:build integration

package manual

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// writeWords writes a version of words with n records.
func writeWords(t *testing.T, source, version string, n int) {
	t.Helper()
	tmp, dir := filepath.Join(source, "words", "_"+version), filepath.Join(source, "words", version)
	sequencefiles.WriteFile(t, filepath.Join(tmp, "part-r-00000"), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		for i := range n {
			add(fmt.Sprintf("word-%04d", i), version)
		}
	})
	expect.NoError(t, errors.Join(os.WriteFile(filepath.Join(tmp, "_SUCCESS"), nil, 0o644), os.Rename(tmp, dir)))
}

// TestBadMorning types the commands of the chapter in their order, beside a node that holds a version.
func TestBadMorning(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	for _, version := range []string{"2026-01-30", "2026-01-31"} {
		writeWords(t, source, version, 1000)
	}
	n := process.Serve(t, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Sections: "[gate]\nmax_shrink = 0.2\n"}, "words", "2026-01-31")
	writeWords(t, source, "2026-02-01", 400)
	n.Signal(t, 1) // SIGHUP
	n.WaitFor(t, "the version is held", func() bool { return n.Health(t)["words"]["2026-02-01"].State == "HELD" })

	// What each command has to print, and what is served after it.
	steps := []struct{ begin, prints, serves string }{
		{"sequins status ", "held: max_shrink: 400 records instead of 1,000, 60 % fewer, at most 20 %", "2026-01-31"},
		{"curl ", `"kind":"held"`, "2026-01-31"},
		{"sequins diff ", "all        1,000           400      0      600", "2026-01-31"},
		{"sequins approve ", "serves 2026-02-01", "2026-02-01"},
		{"sequins rollback ", "serves 2026-01-31", "2026-01-31"},
		{"sequins pin ", "serves 2026-01-30", "2026-01-30"},
		{"sequins unpin ", "_PIN", "2026-01-31"},
		{"sequins refresh", "", "2026-01-31"},
		{"sequins versions", "2026-02-01", "2026-01-31"},
		{"sequins status ", "2026-02-01 excluded", "2026-01-31"},
	}
	found := indented.FindAllStringSubmatch(chapter(t, "TRUST.md", "A bad morning"), -1)
	if len(found) != len(steps) {
		t.Fatalf("%d commands in the chapter, %d steps", len(found), len(steps))
	}
	for i, step := range steps {
		command := strings.ReplaceAll(found[i][1], "node1:9599", n.Addr)
		if !strings.HasPrefix(command, step.begin) {
			t.Fatalf("%q is not a %s", command, step.begin)
		}
		out := typeIt(t, n, command)
		if !strings.Contains(out, step.prints) {
			t.Errorf("%s prints\n%s\nwant %s", command, out, step.prints)
		}
		n.WaitCurrent(t, "words", step.serves)
	}
}

// typeIt runs a command where the configuration of the node is. sequins status fails if the node is not healthy.
func typeIt(t *testing.T, n *process.Node, command string) string {
	t.Helper()
	bin := t.TempDir()
	expect.NoError(t, os.Symlink(process.Binary(t), filepath.Join(bin, "sequins")))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir, cmd.Env = filepath.Dir(n.Conf), append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.HasPrefix(command, "sequins status") {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// TestSignatureInPython checks signed events with the program of the manual.
func TestSignatureInPython(t *testing.T) {
	_, after, _ := strings.Cut(chapter(t, "TRUST.md", "Events"), "```python\n")
	program, _, _ := strings.Cut(after, "```")
	testSigned(t, program)
}
