package accept_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/internal/accept"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logs collects what is logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// scripted is a listener whose Accept first returns some errors.
type scripted struct {
	net.Listener
	errs []error
}

func (l *scripted) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func dial(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

func acceptError(err error) error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

// Temporary errors are logged and retried; others are returned.
func TestErrors(t *testing.T) {
	ln, out, record := listen(t), new(logs), new(accept.Record)
	errs := []error{acceptError(syscall.ENOBUFS), acceptError(syscall.EMFILE), acceptError(syscall.ENFILE)}
	l := accept.New(&scripted{ln, errs}, record, slog.New(slog.NewTextHandler(out, nil)), nil)
	dial(t, ln)
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	for _, want := range []string{"accepting a connection", "no buffer space available"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the log: %s", want, out)
		}
	}
	if record.Refused() != 0 || !record.Last().IsZero() {
		t.Errorf("%d refused, the last at %v: no connection was", record.Refused(), record.Last())
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a closed listener: %v", err)
	}
}

// exhaust opens files until the process may have no more, and returns what closes n of them.
func exhaust(t *testing.T) (release func(n int)) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 64
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var open []*os.File
	release = func(n int) {
		for _, f := range open[:n] {
			f.Close()
		}
		open = open[n:]
	}
	t.Cleanup(func() {
		release(len(open))
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			return release
		}
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
	}
}

// A process without descriptors answers and closes connections at once, and serves them when it has some again.
func TestExhausted(t *testing.T) {
	ln, out, record := listen(t), new(logs), new(accept.Record)
	refuse := func(nc net.Conn) { io.WriteString(nc, "none left\n") }
	l := accept.New(ln, record, slog.New(slog.NewTextHandler(out, nil)), refuse)
	const clients = 5
	var waiting []net.Conn
	for i := range clients {
		c := dial(t, ln)
		if i > 0 { // the first is silent
			if _, err := io.WriteString(c, strings.Repeat("request ", 100)); err != nil {
				t.Fatal(err)
			}
		}
		waiting = append(waiting, c)
	}
	release := exhaust(t)
	accepted := make(chan net.Conn)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- nc
		}
	}()
	for i, c := range waiting {
		if b, err := io.ReadAll(c); err != nil || string(b) != "none left\n" {
			t.Errorf("connection %d: %q, %v", i, b, err)
		}
	}
	if n := record.Refused(); n != clients || time.Since(record.Last()) > time.Minute {
		t.Errorf("%d connections were refused, the last at %v", n, record.Last())
	}
	release(4)
	c := dial(t, ln)
	select {
	case nc := <-accepted:
		io.WriteString(nc, "served\n")
		nc.Close()
	case <-time.After(time.Minute):
		t.Fatal("no connection is accepted when there are descriptors again")
	}
	if b, err := io.ReadAll(c); err != nil || string(b) != "served\n" {
		t.Errorf("%q, %v", b, err)
	}
	l.Close()
	if _, open := <-accepted; open {
		t.Error("another connection was accepted")
	}
	if lines := strings.Count(out.String(), "no file descriptor is left"); lines < 1 || lines > 60 {
		t.Errorf("%d lines in the log", lines)
	}
}
