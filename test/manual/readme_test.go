//go:build integration

package manual

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// clone makes a directory with the content of a clone of the repository and its own directories for built files.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(process.Root())
	expect.NoError(t, err)
	for _, e := range entries {
		if e.Name() == "bin" || e.Name() == "dist" {
			continue
		}
		expect.NoError(t, os.Symlink(filepath.Join(process.Root(), e.Name()), filepath.Join(dir, e.Name())))
	}
	return dir
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process.Root(), "README.md"))
	expect.NoError(t, err)
	return string(text)
}

// hereDocument is what stands between a command and the end that it names.
var hereDocument = regexp.MustCompile(`(?s)<<END\n.*?\nEND\n`)

// The commands of the README serve the example from a clone of the repository, and those of CLUSTER.md start a cluster of
// three. The test replaces only addresses and paths in /tmp. Each takes fewer than ten commands.
func TestReadme(t *testing.T) {
	t.Parallel()
	java := harness.Start(t)
	dir := clone(t)
	ports := make([]string, 4)
	for i := range ports {
		_, ports[i], _ = strings.Cut(process.FreeAddr(t), ":")
	}
	here := strings.NewReplacer("/tmp/sequins", filepath.Join(t.TempDir(), "store"), "localhost:2181", java.Do(t, "zk start n=1")["connect"],
		"960$i", "$(port $i)", "9602", ports[2], "9599", ports[0],
		"--local-store /tmp/sequins &", "--local-store "+filepath.Join(t.TempDir(), "store")+" --bind 127.0.0.1:"+ports[0]+" &")
	script := "export SEQUINS_SERVER=127.0.0.1:" + ports[0] + "\n" + fmt.Sprintf("port() { case $1 in 1) echo %s;; 2) echo %s;; 3) echo %s;; esac; }\n", ports[1], ports[2], ports[3])
	all := slices.DeleteFunc(append(Blocks(readme(t)), Blocks(page(t, "CLUSTER.md"))...), func(b Block) bool { return b.Language != "sh" })
	if len(all) != 2 {
		t.Fatalf("%d blocks of commands", len(all))
	}
	for _, b := range all {
		if n := strings.Count(hereDocument.ReplaceAllString(b.Text, ""), "\n"); n >= 10 {
			t.Errorf("%d commands:\n%s", n, b.Text)
		}
		// The first of three nodes to be ready says that the others still copy partitions, and exits with 4.
		const status = "bin/sequins status --server localhost:9602\n"
		text := strings.Replace(b.Text, status, "until "+strings.Replace(status, "\n", " >/dev/null; do sleep 0.1; done\n", 1)+status, 1)
		script += here.Replace(text) + "echo end of block\n"
	}
	said := strings.Split(typed(t, dir, script), "end of block\n")
	if len(said) != 3 {
		t.Fatalf("%q", said)
	}
	for i, want := range [][]string{{"a fruit", "Serving 1 database."}, {"ready", "a fruit", "3 nodes", "Serving 1 database.", "assignment balanced"}} {
		for _, w := range want {
			if !strings.Contains(said[i], w) {
				t.Errorf("block %d does not print %q:\n%s", i, w, said[i])
			}
		}
	}
}

// The first command of the README switches to another version under load, and ends with ^C.
func TestDemo(t *testing.T) {
	t.Parallel()
	const command = "go run ./cmd/sequins demo"
	if !strings.Contains(readme(t), "\n    "+command+"\n") {
		t.Fatalf("the README has no %s", command)
	}
	var out expect.Output
	cmd := exec.Command("bash", "-c", command+" --pause 10ms")
	cmd.Dir, cmd.Stdout, cmd.Stderr = clone(t), &out, &out
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath") // what the program is built with elsewhere is in Go's cache
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	expect.NoError(t, cmd.Start())
	interrupted := false
	t.Cleanup(func() {
		if !interrupted {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	})
	process.Eventually(t, "the demo has upgraded", func() bool { return strings.Contains(out.String(), "upgraded: ") })
	if !strings.Contains(out.String(), "none failed, none was wrong, none went back") {
		t.Errorf("the demo says\n%s", &out)
	}
	interrupted = true
	err := errors.Join(syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	if werr := cmd.Wait(); err != nil || strings.Contains(out.String(), "panic") {
		t.Errorf("^C: %v, %v\n%s", err, werr, &out)
	}
}
