package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	xterm "golang.org/x/term"

	"sequins/internal/term"
	"sequins/observe/status"
)

// Options are the settings of Run.
type Options struct {
	// Terminal is written to and read from. It supports deadlines, as /dev/tty does.
	Terminal *os.File
	// Console has the colors of the terminal.
	Console term.Console
	// Name is that of the node, and Ask asks for its status.
	Name string
	Ask  func(ctx context.Context) (status.Status, error)
	// Period is the time between two requests; 0 means two seconds.
	Period time.Duration
}

const (
	// Sequences of terminals: the other screen, on which nothing scrolls, and the cursor.
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[2J"
	clearToEnd  = "\x1b[K"

	// escapeTime is how long the bytes of one key may take.
	escapeTime = 50 * time.Millisecond
)

// answer is a status, or why there is none.
type answer struct {
	st  status.Status
	err error
}

// screen is a terminal in the state of the view.
type screen struct {
	f       *os.File
	fd      int // of f
	before  *xterm.State
	width   int
	height  int
	drawn   []string // lines as they are on the terminal
	pending []byte   // of a key that is not complete
}

// Run shows the view until it is quit, a signal ends it, or ctx does. The terminal then is as it was, also after a panic.
func Run(ctx context.Context, o Options) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	s := &screen{f: o.Terminal}
	if err := s.find(); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	if err := s.enter(); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, s.leave()) }()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	answers, typed, panicked := make(chan answer), make(chan []byte), make(chan string, 2)
	spawn := func(f func()) {
		running.Go(func() {
			defer func() { // a panic here would end the process without restoring the terminal
				if p := recover(); p != nil {
					panicked <- fmt.Sprintf("%v\n%s", p, debug.Stack())
				}
			}()
			f()
		})
	}
	spawn(func() { ask(ctx, o, answers) })
	spawn(func() { read(ctx, o.Terminal, typed) })
	return s.loop(ctx, New(o.Name, o.Console), events{signals, answers, typed, panicked})
}

// events are what the loop waits for.
type events struct {
	signals  <-chan os.Signal
	answers  <-chan answer
	typed    <-chan []byte
	panicked <-chan string
}

// ask asks the node periodically.
func ask(ctx context.Context, o Options, answers chan<- answer) {
	if o.Period <= 0 {
		o.Period = 2 * time.Second
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		st, err := o.Ask(ctx)
		select {
		case <-ctx.Done():
			return
		case answers <- answer{st, err}:
		}
		timer.Reset(o.Period)
	}
}

// read reads what is typed until ctx ends. The channel is closed if the terminal is gone.
func read(ctx context.Context, f *os.File, typed chan<- []byte) {
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Now()) }) // ends Read
	defer stop()
	for {
		b := make([]byte, 256)
		n, err := f.Read(b)
		if n > 0 {
			select {
			case <-ctx.Done():
				return
			case typed <- b[:n]:
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				close(typed)
			}
			return
		}
	}
}

// loop draws the view after each event, until one ends it.
func (s *screen) loop(ctx context.Context, v *View, e events) error {
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	var escape <-chan time.Time
	for {
		if err := s.draw(v); err != nil {
			return err
		}
		quit := false
		select {
		case <-ctx.Done():
			return nil
		case text := <-e.panicked:
			panic(text)
		case sig := <-e.signals:
			if quit = sig != syscall.SIGWINCH; !quit {
				s.resize()
			}
		case a := <-e.answers:
			v.Update(&a.st, a.err, time.Now())
		case b, ok := <-e.typed:
			quit = !ok || s.take(v, b, false)
			if escape = nil; len(s.pending) > 0 {
				escape = time.After(escapeTime)
			}
		case <-escape:
			escape = nil
			quit = s.take(v, nil, true)
		case <-clock.C:
		}
		if quit {
			return nil
		}
	}
}

// take takes bytes that were typed, and reports whether they end the view.
func (s *screen) take(v *View, b []byte, last bool) (quit bool) {
	var all []Key
	all, s.pending = keys(append(s.pending, b...), last)
	for _, k := range all {
		if k == CtrlZ {
			s.suspend()
			continue
		}
		if v.Key(k) {
			return true
		}
	}
	return false
}

// find finds the descriptor. Fd would make the file a blocking one, whose reads do not end.
func (s *screen) find() error {
	raw, err := s.f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { s.fd = int(fd) })
}

// enter prepares the terminal.
func (s *screen) enter() (err error) {
	if s.before, err = xterm.MakeRaw(s.fd); err != nil {
		return err
	}
	s.resize()
	_, err = io.WriteString(s.f, enterScreen)
	return err
}

// leave restores the terminal.
func (s *screen) leave() error {
	_, err := io.WriteString(s.f, leaveScreen)
	return errors.Join(err, xterm.Restore(s.fd, s.before))
}

// suspend stops this process like ^Z does elsewhere, and goes on when the shell continues it.
func (s *screen) suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = s.leave() // if it fails, there is nothing to go back to
	if syscall.Kill(0, syscall.SIGSTOP) == nil {
		<-continued // this thread may run on for a moment before it stops
	}
	_ = s.enter()
}

// resize takes over the size of the terminal, and draws everything anew.
func (s *screen) resize() {
	const width, height = 80, 24 // of a terminal that does not know
	var err error
	if s.width, s.height, err = xterm.GetSize(s.fd); err != nil || s.width <= 0 || s.height <= 0 {
		s.width, s.height = width, height
	}
	s.drawn = nil
}

// draw writes the lines that have changed.
func (s *screen) draw(v *View) error {
	var b strings.Builder
	if s.drawn == nil {
		b.WriteString(clearScreen)
	}
	lines := v.Frame(s.width, s.height, time.Now())
	for i, line := range lines {
		if i < len(s.drawn) && s.drawn[i] == line {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s%s", i+1, line, clearToEnd)
	}
	if s.drawn = lines; b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(s.f, b.String())
	return err
}
