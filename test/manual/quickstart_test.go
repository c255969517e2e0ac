//go:build integration

package manual

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	m.Run()
	process.RemoveBinary()
}

// page reads a page of the manual.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process.Root(), "docs", name))
	expect.NoError(t, err)
	return string(text)
}

// The commands of the quick start succeed in one shell, in a clone of the repository, and print what the page shows.
func TestQuickStart(t *testing.T) {
	dir, bin := clone(t), t.TempDir()
	_, port, err := net.SplitHostPort(process.FreeAddr(t))
	expect.NoError(t, err)
	expect.NoError(t, os.Symlink(process.Binary(t), filepath.Join(bin, "sequins")))
	files := filepath.Join(t.TempDir(), "quickstart")
	here := strings.NewReplacer("--config /tmp/quickstart/sequins.conf &", "--config "+files+"/sequins.conf --bind 127.0.0.1:"+port+" &",
		"/tmp/quickstart", files, "9599", port)

	script, shown := "PATH="+bin+":$PATH\nexport SEQUINS_SERVER=127.0.0.1:"+port+"\n", 0
	all := Blocks(page(t, "QUICKSTART.md"))
	for _, b := range all {
		if b.Language == "sh" {
			if strings.HasPrefix(b.Text, "sequins status") { // a version is active a moment before its load has ended, and people type more slowly
				script += "until ! sequins status | grep -q loading; do sleep 0.1; done\n"
			}
			script += here.Replace(b.Text) + "echo end of block\n"
		}
	}
	said := strings.Split(typed(t, dir, script), "end of block\n")
	for i, command := 0, 0; i < len(all); i++ {
		if all[i].Language == "sh" {
			command++
			continue
		}
		shown++
		if diff := cmp.Diff(normal(here.Replace(all[i].Text)), normal(said[command-1])); diff != "" {
			t.Errorf("after block %d of commands (-shown +printed):\n%s", command, diff)
		}
	}
	if shown < 5 {
		t.Errorf("%d blocks of output", shown)
	}
}

// logged are lines of the node's log, which are on the same terminal.
var logged = regexp.MustCompile(`(?m)^time=.*\n`)

// nearlyFull is what a status says of a disk that is nearly full, as that of the machine of the tests may be.
var nearlyFull = regexp.MustCompile(`(?m)^The disk of this node has .* free\.\n| *the disk is nearly full$`)

// normal is output with what differs from run to run taken out: the log, times, numbers, the names of the machine and
// of the release, how full its disk is, and the widths of columns.
func normal(out string) string {
	out = strings.ReplaceAll(logged.ReplaceAllString(out, ""), "\r", "")
	out = nearlyFull.ReplaceAllString(out, "")
	out = regexp.MustCompile(`sequins [^,\n]+, up`).ReplaceAllString(out, "sequins RELEASE, up")
	out = regexp.MustCompile(`(NODE .*\n)\S+`).ReplaceAllString(out, "${1}HOST")
	out = regexp.MustCompile(`[0-9]+`).ReplaceAllString(out, "0")
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(out, " ")
}

// typed runs commands by a shell in a directory, and returns their output. Each must succeed. Processes that
// still run at the end are killed.
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
