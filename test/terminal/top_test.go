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

	"sequins/test/process"
)

// load asks a node for a key that exists and one that does not, all the time.
func load(t *testing.T, n *process.Node) (stop func()) {
	t.Helper()
	end, running := make(chan struct{}), sync.WaitGroup{}
	running.Go(func() {
		for {
			c := n.Client()
			for range 100 {
				select {
				case <-end:
					c.Close()
					return
				default:
					_, _ = c.Get("/words/apple") // while the node is away, too
					_, _ = c.Get("/words/no-such-key")
				}
			}
			c.Close()
		}
	})
	return sync.OnceFunc(func() { close(end); running.Wait() })
}

// The live view follows a node through requests, its death and its return, in every size, and leaves the terminal as it was.
func TestTop(t *testing.T) {
	addr := process.FreeAddr(t)
	n, c := example(t, addr)
	stop := load(t, n)
	defer stop()
	s := newShell(t, 80, 24)
	s.line("echo before; stty -a > modes")
	s.line("sequins top " + addr)
	s.shows("sequins top, http://"+addr, "Serving 2 databases.", "> users", "EVENTS", "active words 2026-01-31", "q quit")
	busy := regexp.MustCompile(`words +2026-01-31 +[1-9][0-9,]* +50\.0% +[0-9.]+ [µm]s +[0-9.]+ [µm]s`)
	s.waitFor("traffic of words", func(screen string) bool { return busy.MatchString(screen) })

	s.keys("j")
	s.shows("> words")
	s.keys("Up")
	s.shows("> users")
	s.keys("s")
	s.shows("REQ/S↓")
	s.waitFor("words first", func(screen string) bool { return strings.Index(screen, "words  ") < strings.Index(screen, "users  ") })
	s.tmux("send-keys", "-l", "/use")
	s.shows("/use_")
	s.keys("Enter")
	s.waitFor("users alone", func(screen string) bool {
		return strings.Contains(screen, "filter: use") && !regexp.MustCompile(`(?m)^. words`).MatchString(screen)
	})
	s.keys("Escape")
	s.waitFor("both again", func(screen string) bool { return regexp.MustCompile(`(?m)^. words`).MatchString(screen) })

	for _, size := range [][2]int{{60, 10}, {120, 40}, {30, 6}, {80, 24}} {
		s.resize(size[0], size[1])
		s.waitFor(fmt.Sprint(size, " is filled"), func(screen string) bool {
			lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
			return len(lines) == size[1] && strings.HasPrefix(lines[0], "sequins top") && strings.HasPrefix(lines[len(lines)-1], "q quit")
		})
	}

	n.Kill()
	s.shows("what follows is", "old: http://"+addr+" ", "> users")
	process.Start(t, c)
	s.waitFor("the node is back", func(screen string) bool {
		return strings.Contains(screen, "Serving 2 databases.") && !strings.Contains(screen, "what follows is")
	})

	s.keys("q")
	s.shows("$ echo before", "before", "$ sequins top "+addr)
	s.line("echo $?; stty -a | diff - modes && echo the same")
	s.shows("\n0\n", "the same")
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
			s.line("clear; fg")
			s.shows("> users")
			s.keys("q")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, 80, 24)
			s.line("stty -a > modes")
			s.line("sequins top " + n.Addr)
			s.shows("> users")
			end(s)
			s.waitFor("the shell", func(screen string) bool {
				return !strings.Contains(screen, "> users") && strings.Contains(screen, "$ ")
			})
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
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatalf("the shell has the children %q", children)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// Without a terminal, there is an error that says what to use.
func TestTopNeedsATerminal(t *testing.T) {
	s := newShell(t, 120, 10)
	s.line("sequins top | cat; TERM=dumb sequins top; echo exit $?")
	s.waitFor("two errors", func(screen string) bool {
		return strings.Count(screen, "sequins: top needs a terminal: use sequins status") == 2 && strings.Contains(screen, "exit 1")
	})
}
