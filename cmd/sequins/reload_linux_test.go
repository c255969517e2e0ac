package main

import (
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
)

// A lease on a file makes another process that opens it hang until the lease is given back, at most 45 seconds.
type lease struct {
	t      *testing.T
	f      *os.File
	wanted chan os.Signal // another process hangs
}

func takeLease(t *testing.T, path string) *lease {
	t.Helper()
	l := &lease{t: t, wanted: make(chan os.Signal, 1)}
	signal.Notify(l.wanted, syscall.SIGIO)
	t.Cleanup(func() { signal.Stop(l.wanted) })
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	expect.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	l.f = f
	if err := l.set(syscall.F_WRLCK); err != nil {
		t.Fatalf("no lease on %s: %v", path, err)
	}
	return l
}

func (l *lease) set(kind int) error {
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, l.f.Fd(), syscall.F_SETLEASE, uintptr(kind))
	if errno != 0 {
		return errno
	}
	return nil
}

func (l *lease) awaitOpen() {
	l.t.Helper()
	select {
	case <-l.wanted:
	case <-time.After(patience):
		l.t.Fatal("nobody opens the file")
	}
}

// hanging starts a server of the large value, and has a reload of it hang at its tokens.
func hanging(t *testing.T) (s *served, l *lease, conf, content string) {
	t.Helper()
	dir := t.TempDir()
	demoSource(t, dir)
	largeSource(t, dir)
	conf, tokens := filepath.Join(dir, "sequins.conf"), filepath.Join(dir, "tokens")
	content = "source = \"" + dir + "/source\"\nlocal_store = \"" + dir + "/store\"\n[auth]\ntokens_file = \"" + tokens + "\"\n"
	writeFile(t, conf, content)
	writeFile(t, tokens, "ops "+opsToken+" * pages\n")
	s = startServer(t, dir)
	s.token = opsToken
	s.awaitVersion(demoPath, demoFirst)
	l = takeLease(t, tokens)
	s.signal(syscall.SIGHUP)
	l.awaitOpen()
	return s, l, conf, content
}

// reloads returns how many reloads have ended.
func (s *served) reloads() int {
	return strings.Count(strings.Join(s.said(), "\n"), "reload: looking for new versions")
}

// A reload that hangs does not keep a node from ending.
func TestSignalsDuringAReload(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		s, _, _, _ := hanging(t)
		s.signal(syscall.SIGHUP)
		s.stop(syscall.SIGTERM)
		if s.reloads() > 0 {
			t.Error("it has waited for the reload")
		}
	})
	t.Run("two", func(t *testing.T) {
		s, _, _, _ := hanging(t)
		s.inFlight()
		s.signal(syscall.SIGTERM)
		s.waitFor(`msg="signal: finishing what is in flight`)
		s.signal(syscall.SIGTERM)
		if code := s.wait(); code != 143 || s.reloads() > 0 {
			t.Errorf("exit code %d after %d reloads", code, s.reloads())
		}
	})
}

// Signals during a reload make one more follow, which sees what was written meanwhile. Requests are answered, and the log says that
// it hangs.
func TestOneMoreReloadFollows(t *testing.T) {
	t.Parallel()
	s, l, conf, content := hanging(t)
	writeFile(t, conf, "content_type = \"text/plain\"\n"+content) // while the first reload hangs
	for range 3 {
		s.signal(syscall.SIGHUP)
	}
	s.waitFor(`level=ERROR msg="reload: it has not ended yet"`)
	s.await("/", "reload_error", func(_ *http.Response, body string) bool {
		return strings.Contains(body, `"reload_error":`) && strings.Contains(body, "has not ended")
	})
	expect.NoError(t, l.set(syscall.F_UNLCK))
	s.waitFor(`looking for new versions" changed="?\[content_type\]`)
	s.awaitContentType("text/plain")
	s.await("/", "no reload_error", func(_ *http.Response, body string) bool { return !strings.Contains(body, `"reload_error":`) })
	if n := s.reloads(); n != 2 {
		t.Errorf("%d reloads", n)
	}
	s.stop(syscall.SIGTERM)
}
