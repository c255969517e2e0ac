package conns_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/conns"
	"sequins/internal/limitlog"
	"sequins/test/expect"
)

// client is a server's type of a connection.
type client struct{ conns.Base }

func newSet(max int) *conns.Set {
	return &conns.Set{Max: max, Log: limitlog.New(slog.New(slog.DiscardHandler))}
}

// counted counts how often deadlines are set.
type counted struct {
	net.Conn
	reads, writes int
}

func (c *counted) SetReadDeadline(time.Time) error  { c.reads++; return nil }
func (c *counted) SetWriteDeadline(time.Time) error { c.writes++; return nil }

func TestDeadlinesThatDoNotMove(t *testing.T) {
	under := &counted{}
	c := &client{newSet(1).New(under, time.Second)}
	now := time.Now()
	for _, d := range []time.Duration{0, time.Millisecond, time.Second, 2 * time.Second, time.Second} { // the last one is earlier
		expect.NoError(t, errors.Join(c.Await(now.Add(d), true), c.ExtendWrite(now.Add(d))))
	}
	if under.reads != 3 || under.writes != 2 {
		t.Errorf("deadlines were set %d times for reads, and %d times for writes", under.reads, under.writes)
	}
	c.Await(time.Time{}, true)
	c.Await(time.Time{}, true)
	c.LimitWrite(now)
	c.ExtendWrite(now.Add(2 * time.Second))
	if under.reads != 4 || under.writes != 4 {
		t.Errorf("then %d times for reads, and %d times for writes", under.reads, under.writes)
	}
}

func TestExcess(t *testing.T) {
	s := newSet(2)
	for i, want := range []int{-1, 0, 1, 2} {
		if got := s.Excess(); got != want {
			t.Errorf("with %d connections: %d, want %d", i, got, want)
		}
		c := &client{s.New(&counted{}, 0)}
		s.Go(&c.Base, func() {})
	}
	if refused, _ := s.Refused(); refused != 2 {
		t.Errorf("%d were refused", refused)
	}
}

// A shutdown ends connections that wait for a request, also those that do so later, and waits for the others.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(3)
		far := map[string]net.Conn{}
		for _, name := range []string{"idle", "busy"} {
			var near net.Conn
			near, far[name] = net.Pipe()
			c := &client{s.New(near, 0)}
			s.Go(&c.Base, func() {
				defer c.Close()
				for c.Await(time.Now().Add(time.Hour), true) == nil {
					if _, err := c.Conn.Read(make([]byte, 1)); err != nil {
						return
					}
					c.Arrived()
					time.Sleep(time.Second) // for the answer
				}
			})
		}
		far["busy"].Write([]byte{1})
		synctest.Wait()
		s.Hurry()
		begun := time.Now()
		ended := func(name string) time.Duration {
			if _, err := far[name].Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%s: %v", name, err)
			}
			return time.Since(begun)
		}
		if d := ended("idle"); d > 100*time.Millisecond {
			t.Errorf("the idle one ended after %v", d)
		}
		if d := ended("busy"); d < time.Second || d > 1100*time.Millisecond {
			t.Errorf("the busy one ended after %v", d)
		}
		if err := s.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
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

// Temporary errors of a listener are logged and retried; others are returned.
func TestErrorsOfAccept(t *testing.T) {
	failed := func(err error) error {
		return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	client, err := net.Dial("tcp", ln.Addr().String())
	expect.NoError(t, err)
	defer client.Close()
	var out bytes.Buffer
	temporary := []error{failed(syscall.ENOBUFS), failed(syscall.EMFILE), failed(syscall.ENFILE)}
	patient := conns.Patient(&scripted{ln, temporary}, slog.New(slog.NewTextHandler(&out, nil)))
	nc, err := patient.Accept()
	expect.NoError(t, err)
	nc.Close()
	ln.Close()
	if _, err := patient.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
	for _, want := range []string{"accepting a connection", "no buffer space available"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the log: %s", want, &out)
		}
	}
}
