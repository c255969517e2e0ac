package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

func TestPageCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	const size = 1 << 20
	expect.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	expect.NoError(t, Drop(path))
	before, err := ReadsSoFar(path)
	expect.NoError(t, err)
	expect.NoError(t, Warm(path))
	after, err := ReadsSoFar(path)
	expect.NoError(t, err)
	r := after.Sub(before)
	if r.Bytes < size || r.Calls < 1 || r.Device < 1 {
		t.Errorf("reading a dropped file of %d bytes counted as %+v", size, r)
	}
	if n, err := Resident(path); n != size || err != nil {
		t.Errorf("%d bytes resident, %v", n, err)
	}
}

func TestCPUOf(t *testing.T) {
	cmd := OnCPUs("0", "sh", "-c", "while :; do :; done & wait")
	expect.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for deadline := time.Now().Add(10 * time.Second); ; {
		d, err := CPUOf(cmd.Process.Pid)
		expect.NoError(t, err)
		children, err := childrenOf(cmd.Process.Pid)
		expect.NoError(t, err)
		if d >= 100*time.Millisecond && len(children) == 1 {
			child, err := os.FindProcess(children[0])
			expect.NoError(t, err)
			child.Kill()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a loop's child used %v", d)
		}
	}
	if m, err := PeakMemory(os.Getpid()); m < 1<<20 || err != nil {
		t.Errorf("peak memory %d, %v", m, err)
	}
}

// The time of a child counts also while its parent waits for it.
func TestCPUOfEndingChildren(t *testing.T) {
	cmd := OnCPUs("0", "sh", "-c", "while :; do (i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done); done")
	expect.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	deadline := time.Now().Add(30 * time.Second)
	for before := time.Duration(0); before < time.Second; {
		now, err := CPUOf(cmd.Process.Pid)
		expect.NoError(t, err)
		if now < before-2*tick {
			t.Fatalf("%v after %v", now, before)
		}
		before = now
		if time.Now().After(deadline) {
			t.Fatalf("a loop used %v", now)
		}
	}
}

func TestMachine(t *testing.T) {
	if m := Machine(); !strings.Contains(m, "cores") || strings.Contains(m, "\x00") {
		t.Errorf("%q", m)
	}
}
