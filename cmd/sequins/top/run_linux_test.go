package top_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sequins/cmd/sequins/top"
	"sequins/internal/term"
	"sequins/observe/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pty is a pseudo-terminal: what is written to it, and its two ends.
type pty struct {
	t           *testing.T
	master, tty *os.File

	mu  sync.Mutex
	out bytes.Buffer
}

func newPTY(t *testing.T) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, master: master}
	var n int
	p.control(func(fd int) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	})
	if err == nil {
		p.tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.resize(80, 24)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 4096)
		for {
			n, err := p.master.Read(b)
			p.mu.Lock()
			p.out.Write(b[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { p.tty.Close(); p.master.Close(); <-done })
	return p
}

// control calls f with the descriptor of the master, which stays usable with deadlines.
func (p *pty) control(f func(fd int)) {
	raw, err := p.master.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) resize(width, height uint16) {
	p.control(func(fd int) {
		if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
			p.t.Fatal(err)
		}
	})
}

// modes returns the modes of the terminal, of which those of lines, echo and signals must be as before.
func (p *pty) modes() (modes unix.Termios) {
	p.control(func(fd int) {
		m, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			p.t.Fatal(err)
		}
		modes = *m
	})
	return modes
}

func (p *pty) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// waitFor waits until something is written.
func (p *pty) waitFor(want string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.output(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%q was never written:\n%q", want, p.output())
		}
	}
}

// run runs the view on the terminal until it ends.
func (p *pty) run(ctx context.Context, ask func(context.Context) (status.Status, error)) (ended <-chan any) {
	done := make(chan any, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- r
			}
		}()
		done <- top.Run(ctx, top.Options{Terminal: p.tty, Console: term.Console{}, Name: "http://node1:9599", Ask: ask, Period: 10 * time.Millisecond})
	}()
	return done
}

func answer(context.Context) (status.Status, error) { return *single(), nil }

// However the view ends, the terminal is as it was.
func TestTheTerminalIsRestored(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(context.Context) (status.Status, error)
		end  func(p *pty, cancel func())
		want string // of the error or panic; "" for none
	}{
		"q":       {answer, func(p *pty, _ func()) { p.master.WriteString("q") }, ""},
		"^C":      {answer, func(p *pty, _ func()) { p.master.WriteString("\x03") }, ""},
		"SIGTERM": {answer, func(*pty, func()) { syscall.Kill(os.Getpid(), syscall.SIGTERM) }, ""},
		"SIGHUP":  {answer, func(*pty, func()) { syscall.Kill(os.Getpid(), syscall.SIGHUP) }, ""},
		"SIGINT":  {answer, func(*pty, func()) { syscall.Kill(os.Getpid(), syscall.SIGINT) }, ""},
		"context": {answer, func(_ *pty, cancel func()) { cancel() }, ""},
		"panic":   {func(context.Context) (status.Status, error) { panic("on purpose") }, func(*pty, func()) {}, "on purpose\ngoroutine "},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPTY(t)
			before := p.modes()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := p.run(ctx, test.ask)
			p.waitFor("sequins top, http://node1:9599")
			if name != "panic" {
				if modes := p.modes(); modes.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
					t.Errorf("the modes are %+v meanwhile", modes)
				}
				p.waitFor("> birds")
			}
			test.end(p, cancel)
			select {
			case got := <-ended:
				if test.want == "" && got != nil || test.want != "" && !strings.Contains(fmt.Sprint(got), test.want) {
					t.Errorf("it ended with %v", got)
				}
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
			p.waitFor("\x1b[?25h\x1b[?1049l")
			if after := p.modes(); after != before {
				t.Errorf("the modes are\n%+v, and were\n%+v", after, before)
			}
		})
	}
}

// A terminal that goes away ends the view.
func TestHangUp(t *testing.T) {
	p := newPTY(t)
	ended := p.run(t.Context(), answer)
	p.waitFor("> birds")
	p.master.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// Another size is drawn at once, and otherwise only lines that have changed are written.
func TestResize(t *testing.T) {
	p := newPTY(t)
	ended := p.run(t.Context(), answer)
	p.waitFor("\x1b[24;1Hq quit")
	p.resize(60, 10)
	syscall.Kill(os.Getpid(), syscall.SIGWINCH) // it is not the terminal that controls this process
	p.waitFor("\x1b[10;1Hq quit")
	written := len(p.output())
	p.master.WriteString("j")
	p.waitFor("> users")
	p.master.WriteString("q")
	<-ended
	if news := p.output()[written:]; strings.Contains(news, "Serving 3 databases") {
		t.Errorf("unchanged lines are written: %q", news)
	}
}

// A node that comes back is noticed.
func TestTheNodeComesBack(t *testing.T) {
	p := newPTY(t)
	var n int
	ended := p.run(t.Context(), func(context.Context) (status.Status, error) {
		if n++; n%20 < 10 {
			return status.Status{}, errors.New("http://node1:9599 refuses the connection")
		}
		return *single(), nil
	})
	p.waitFor("\x1b[2;1Hhttp://node1:9599 refuses")
	p.waitFor("Serving 3 databases")
	p.waitFor("what follows is 0 s old: http://node1:9599 refuses")
	p.master.WriteString("\x1b[") // half of a key, and then another
	p.master.WriteString("B")
	p.waitFor("> users")
	p.master.WriteString("q")
	<-ended
}
