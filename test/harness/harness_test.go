//go:build integration

package harness

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"sequins/test/expect"
)

// shared is a program for tests that leave nothing behind in it.
var shared struct {
	sync.Mutex
	*Harness
}

// running returns the shared program.
func running(t *testing.T) *Harness {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.Harness == nil {
		root, err := os.MkdirTemp("", "sequins-harness-")
		expect.NoError(t, err)
		if shared.Harness, err = Open(root); err != nil {
			t.Fatal(errors.Join(err, os.RemoveAll(root)))
		}
	}
	return shared.Harness
}

// closing is a testing.M that ends the shared program.
type closing struct{ *testing.M }

func (m closing) Run() int {
	code := m.M.Run()
	if shared.Harness == nil {
		return code
	}
	if err := errors.Join(shared.Close(), os.RemoveAll(shared.Root)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

func TestDoAndTry(t *testing.T) {
	h := running(t)
	r := h.Do(t, "codecs")
	for _, c := range []string{"DefaultCodec", "DeflateCodec", "GzipCodec", "SnappyCodec", "Lz4Codec", "ZStandardCodec", "BZip2Codec"} {
		if !strings.HasPrefix(r[c], "ok:") {
			t.Errorf("%s: %q", c, r[c])
		}
	}
	if _, err := h.Try("nonsense"); err == nil || !strings.Contains(err.Error(), "unknown command nonsense") {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := h.Try("codecs\ncodecs"); err == nil {
		t.Error("two commands in one")
	}
	h.Do(t, "codecs") // the program continues after an error
}

func TestProgramThatDies(t *testing.T) {
	h, err := Open(t.TempDir())
	expect.NoError(t, err)
	expect.NoError(t, h.cmd.Process.Kill())
	for range 2 {
		if _, err := h.Try("codecs"); err == nil {
			t.Fatal("a dead program answers")
		}
	}
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("at the end: %v, want an error that says it was killed", err)
	}
}

// The process has ended when the test ends.
func TestStopWaits(t *testing.T) {
	var pid int
	t.Run("started", func(t *testing.T) {
		h := Start(t)
		h.Do(t, "zk start")
		pid = h.cmd.Process.Pid
	})
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after its test: %v", pid, err)
	}
}
