//go:build integration

package deep

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/process"
	"sequins/test/sequencefiles"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.RemoveBinary()
	os.Exit(code)
}

// report is what check-config --deep has printed.
type report struct {
	t     *testing.T
	all   string
	lines map[string]string // by check: the level and the text
	code  int
}

// check runs check-config --deep, as another user if uid is not 0, with words before the command.
func check(t *testing.T, conf string, uid uint32, prefix ...string) report {
	t.Helper()
	dir, err := os.MkdirTemp("", "sequins-deep-") // which other users may read
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sequins.conf")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	words := append(prefix, process.Binary(t), "check-config", "--deep", path)
	cmd := exec.Command(words[0], words[1:]...)
	if uid != 0 {
		binary := filepath.Join(dir, "sequins")
		if err := os.Link(words[len(words)-4], binary); err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args[0] = binary, binary
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, _ := cmd.CombinedOutput() // the exit code says it
	r := report{t: t, all: string(out), lines: map[string]string{}, code: cmd.ProcessState.ExitCode()}
	for line := range strings.Lines(r.all) {
		level, rest, _ := strings.Cut(line, " ")
		if name, text, found := strings.Cut(strings.TrimSpace(rest), ": "); found {
			r.lines[name] = level + " " + strings.TrimSpace(text)
		}
	}
	return r
}

// expects checks that a line begins with the level, and has all of the words.
func (r report) expects(name, level string, words ...string) {
	r.t.Helper()
	got := r.lines[name]
	for _, word := range append(words, level+" ") {
		if !strings.HasPrefix(got, level+" ") || !strings.Contains(got, word) {
			r.t.Errorf("%s is %q, want %s with %q\n%s", name, got, level, word, r.all)
			return
		}
	}
	if failed := strings.Contains("\n"+r.all, "\nfailed "); failed != (r.code == 1) {
		r.t.Errorf("exit code %d\n%s", r.code, r.all)
	}
}

// configuration returns one with a store of its own.
func configuration(t *testing.T, source, more string) string {
	t.Helper()
	return fmt.Sprintf("source = %q\nlocal_store = %q\nbind = %q\n%s\n", source, filepath.Join(t.TempDir(), "store"), process.FreeAddr(t), more)
}

// writeVersion writes a version of one file of about some bytes below a directory.
func writeVersion(t *testing.T, source string, bytes int) {
	t.Helper()
	dir := filepath.Join(source, "db", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "part-00000"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := sequencefiles.NewWriter(f, sequencefiles.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append([]byte("key"), make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
