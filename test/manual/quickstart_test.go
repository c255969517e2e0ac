package manual

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"sequins/sequencefile"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.RemoveBinary()
	os.Exit(code)
}

// page reads a page of the manual.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process.Root(), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is a fenced one of a page.
type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func blocks(text string) (all []block) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// Somebody types the quick start into a shell, from its top to its end: every command succeeds, and prints
// what the page says.
func TestQuickStart(t *testing.T) {
	dir := t.TempDir()
	writeApple(t, filepath.Join(dir, "part-r-00000"))
	_, port, err := net.SplitHostPort(process.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/srv/sequins", dir+"/srv", "/tmp/sequins", dir+"/store", "9599", port)
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(process.Binary(t), filepath.Join(bin, "sequins"))); err != nil {
		t.Fatal(err)
	}

	// The output of each block ends with a line that names it.
	script := "PATH=" + bin + ":$PATH\n"
	all := blocks(page(t, "QUICKSTART.md"))
	for i, b := range all {
		if b.language == "sh" {
			text := strings.Replace(here.Replace(b.text), "--local-store "+dir+"/store", "--local-store "+dir+"/store --bind 127.0.0.1:"+port, 1)
			script += fmt.Sprintf("%s\necho end of block %d\n", text, i)
		}
	}
	out := typed(t, dir, script)
	checked := 0
	for i, b := range all {
		if b.language != "text" {
			continue
		}
		_, said, found := strings.Cut(out, fmt.Sprintf("end of block %d\n", before(all[:i])))
		if before(all[:i]) < 0 {
			said, found = out, true
		}
		said, _, ended := strings.Cut(said, fmt.Sprintf("end of block %d\n", i-1))
		for line := range strings.Lines(b.text) {
			if !found || !ended || !strings.Contains(said, strings.TrimSpace(line)) {
				t.Errorf("block %d does not print %q:\n%s", i-1, line, said)
			}
			checked++
		}
	}
	if checked < 4 {
		t.Errorf("%d lines of output were looked at", checked)
	}
}

// typed has a shell run commands in a directory, and returns what they print. Each has to succeed. What is still
// running at the end is ended.
func typed(t *testing.T, dir, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*process.Deadline)
	defer cancel()
	script := "set -em\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + commands
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nprinted\n%s", err, script, out)
	}
	return string(out)
}

// before is the last block of commands before the one that the last of these is the output of.
func before(all []block) int {
	for i := len(all) - 2; i >= 0; i-- {
		if all[i].language == "sh" {
			return i
		}
	}
	return -1
}

func writeApple(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := sequencefile.NewWriter(f, sequencefile.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append([]byte("apple"), []byte("a fruit\n")), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
