//go:build integration

package terminal

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// load asks a node for a key that exists and one that does not, some hundred times a second.
func load(t *testing.T, n *process.Node) (stop func()) {
	t.Helper()
	end, running := make(chan struct{}), sync.WaitGroup{}
	running.Go(func() {
		c := n.Client()
		defer c.Close()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				_, _ = c.Get("/words/apple") // while the node is away, too
				_, _ = c.Get("/words/no-such-key")
			}
		}
	})
	return sync.OnceFunc(func() { close(end); running.Wait() })
}

// The live view follows a node through requests, its death and its return, in every size, and leaves the terminal as it was.
func TestTop(t *testing.T) {
	t.Parallel()
	addr := process.FreeAddr(t)
	n, c := example(t, addr)
	stop := load(t, n)
	defer stop()
	s := newShell(t, 100, 24)
	s.line("stty -a > modes")
	s.line("sequins top --server " + addr)
	s.shows("http://"+addr+", sequins ", "Serving 2 databases.", "\nusers ", "EVENTS", "active words 2026-01-31")
	busy := regexp.MustCompile(`words +2026-01-31 +[1-9][0-9,]* +50\.0% +[0-9.]+ [µm]s +[0-9.]+ [µm]s`)
	s.waitFor("traffic of words, which is first", func(screen string) bool {
		return busy.MatchString(screen) && strings.Index(screen, "\nwords ") < strings.Index(screen, "\nusers ")
	})
	for _, size := range [][2]int{{60, 10}, {120, 40}, {30, 6}, {100, 24}} {
		s.resize(size[0], size[1])
		s.waitFor(fmt.Sprint(size, " is filled"), func(screen string) bool {
			return strings.HasPrefix(screen, "http://"+addr) && strings.Contains(screen, "Serving 2 databases.") && strings.Count(screen, "Serving 2 databases.") == 1
		})
	}

	n.Kill()
	s.shows("what follows is", "old: http://"+addr+" ", "\nusers ")
	process.Start(t, c)
	s.waitFor("the node is back", func(screen string) bool {
		return strings.Contains(screen, "Serving 2 databases.") && !strings.Contains(screen, "what follows is")
	})
	s.keys("C-c")
	s.waitFor("a prompt", func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "$") })
	s.line("clear; sequins top --server " + addr + " words")
	s.waitFor("words alone", func(screen string) bool {
		return strings.Contains(screen, "\nwords ") && !strings.Contains(screen, "\nusers ")
	})
}

// Signals, ^C and ^Z leave the terminal as it was.
func TestTopEnds(t *testing.T) {
	n, _ := example(t, "")
	for name, end := range map[string]func(s *shell){
		"^C":      func(s *shell) { s.keys("C-c") },
		"SIGTERM": func(s *shell) { signalTop(t, s, syscall.SIGTERM) },
		"SIGHUP":  func(s *shell) { signalTop(t, s, syscall.SIGHUP) },
		"^Z": func(s *shell) {
			s.keys("C-z")
			s.shows("Stopped")
			s.line("stty -a | diff - modes && echo the same")
			s.shows("the same")
			s.line("clear")
			s.waitFor("an empty screen", func(screen string) bool { return !strings.Contains(screen, "users ") })
			s.line("fg")
			s.shows("\nusers ")
			s.keys("C-c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, 100, 24)
			s.line("stty -a > modes")
			s.line("sequins top --server " + n.Addr)
			s.shows("\nusers ")
			end(s)
			s.waitFor("the shell", func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "$") })
			s.line("clear; echo exit $?; stty -a | diff - modes && echo the same")
			s.shows("exit 0", "the same")
		})
	}
}

// signalTop sends a signal to the sequins of a shell.
func signalTop(t *testing.T, s *shell, signal syscall.Signal) {
	t.Helper()
	pane := strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_pid}"))
	children, err := os.ReadFile("/proc/" + pane + "/task/" + pane + "/children")
	expect.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatalf("the shell has the children %q", children)
	}
	expect.NoError(t, syscall.Kill(pid, signal))
}

// Without a terminal, there is an error that says what to use.
func TestTopNeedsATerminal(t *testing.T) {
	s := newShell(t, 120, 10)
	s.line("sequins top | cat; TERM=dumb sequins top; echo exit $?")
	s.waitFor("two errors", func(screen string) bool {
		return strings.Count(screen, "sequins: top needs a terminal: use sequins status") == 2 && strings.Contains(screen, "exit 1")
	})
}
