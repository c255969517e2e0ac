//go:build integration

package browser

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

var screenshots = flag.Bool("screenshots", false, "take screenshots of the pages, into .cache/screenshots")

func TestMain(m *testing.M) {
	if err := install(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
	process.RemoveBinary()
}

// install installs what package-lock.json names, unless that has been done.
func install() error {
	want, err := os.ReadFile("package-lock.json")
	if err != nil {
		return err
	}
	const stamp = "node_modules/.installed-lock.json"
	if have, err := os.ReadFile(stamp); err == nil && string(have) == string(want) {
		return nil
	}
	if out, err := exec.Command("npm", "ci", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in test/browser: %w\n%s", err, out)
	}
	return os.WriteFile(stamp, want, 0o644)
}

// script runs a scenario of page.mjs over the page at an address. When it prints "> action", that action is
// done, and then it is told to go on.
func script(t *testing.T, scenario, addr string, actions map[string]func()) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: make tools installs it", err)
	}
	shots := ""
	if *screenshots {
		shots = filepath.Join(process.Root(), ".cache", "screenshots")
		expect.NoError(t, os.MkdirAll(shots, 0o755))
	}
	cmd := exec.Command("node", "page.mjs", scenario, "http://"+addr, chromium, shots)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	in, err := cmd.StdinPipe()
	expect.NoError(t, err)
	out, err := cmd.StdoutPipe()
	expect.NoError(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	runtime.LockOSThread() // Pdeathsig follows the thread that started the process
	defer runtime.UnlockOSThread()
	expect.NoError(t, cmd.Start())
	stuck := time.AfterFunc(2*process.Deadline, func() { cmd.Process.Kill() }) //nolint:errcheck // Wait says how it ended
	defer stuck.Stop()
	follow(t, out, in, actions)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("page.mjs %s: %v\n%s", scenario, err, said.String())
	}
}

func follow(t *testing.T, out io.Reader, in io.Writer, actions map[string]func()) {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		name, asked := strings.CutPrefix(lines.Text(), "> ")
		act := actions[name]
		switch {
		case !asked:
			t.Log(lines.Text())
			continue
		case act == nil:
			t.Errorf("page.mjs asks for %q, which nobody does", name)
		default:
			act()
		}
		fmt.Fprintln(in) //nolint:errcheck // Wait says if it has ended
	}
}

// publish writes a version of SequenceFiles, cut along the default function, under a temporary name and renames it.
func publish(t *testing.T, source, db, version string, partitions, keys int) {
	t.Helper()
	tmp := filepath.Join(source, db, "_"+version)
	sequencefiles.WriteParts(t, tmp, partitions, shard.String.Partition, func(add func(key, value string)) {
		for i := range keys {
			key := fmt.Sprintf("key-%06d", i)
			add(key, "secret "+version+" "+key)
		}
	})
	expect.NoError(t, os.Rename(tmp, filepath.Join(source, db, version)))
}
