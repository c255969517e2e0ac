package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/version"
)

func TestDrain(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), Options{})
	if got := s.get(t, "/readyz"); got.status != 200 || got.body != "ready\n" {
		t.Errorf("readyz: %+v", got)
	}
	s.Drain()
	if got := s.get(t, "/readyz"); got.status != 503 || got.body != "draining: this node is shutting down\n" {
		t.Errorf("readyz while draining: %+v", got)
	}
	for target, status := range map[string]int{"/db/a": 200, "/db/none": 404, "/livez": 200, "/": 200, "/db/%": 400} {
		if got := s.get(t, target); got.status != status || !got.closed {
			t.Errorf("%s while draining: %d, closed %v", target, got.status, got.closed)
		}
	}
}

// Shutdown takes idle connections away, also those that never had a request,
// and waits for a value that is being read.
func TestShutdownFinishesRequests(t *testing.T) {
	value := noise(1, 16<<20)
	set := version.NewSet("db")
	activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": value, "a": "one"}))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, Options{})
	_, large := startLarge(t, s, "/db/k")
	idle, fresh := s.dial(t), s.dial(t)
	fmt.Fprint(idle, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
	idleReader := bufio.NewReader(idle)
	if got := read(t, idleReader, "GET"); got.body != "one" {
		t.Fatalf("%+v", got)
	}

	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	for name, r := range map[string]io.Reader{"idle": idleReader, "fresh": fresh} {
		began := time.Now()
		if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("the %s connection: %d bytes, %v", name, n, err)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the %s connection was closed after %v", name, d)
		}
	}
	if c, err := net.Dial("tcp", s.addr); err == nil {
		c.Close()
		t.Error("the listener is open")
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown has not waited: %v", err)
	default:
	}
	body, err := io.ReadAll(large.Body)
	if err != nil || string(body) != value {
		t.Errorf("%d bytes of %d: %v", len(body), len(value), err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// When its time is over, Shutdown cuts what is left and everything is let go.
func TestShutdownGivesUp(t *testing.T) {
	set := version.NewSet("db")
	activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": noise(1, 16<<20)}))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, Options{})
	_, large := startLarge(t, s, "/db/k")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := s.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 connection") {
		t.Errorf("Shutdown: %v", err)
	}
	if body, err := io.ReadAll(large.Body); err == nil {
		t.Errorf("the client got all of it, %d bytes", len(body))
	}
	closeVersion(t, set.Remove("v1"))
}

// However early Shutdown comes, Serve ends, and the listener is closed.
func TestShutdownBeforeServe(t *testing.T) {
	for range 50 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := New(catalogOf(t, nil), Options{})
		done := make(chan error, 1)
		go func() { done <- s.Serve(ln) }()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closing the listener again: %v", err)
		}
	}
}

func TestServeOnAClosedListener(t *testing.T) {
	ln := failing{errors.New("no more files")}
	s := New(catalogOf(t, nil), Options{})
	if err := s.Serve(ln); !errors.Is(err, ln.err) {
		t.Errorf("Serve: %v", err)
	}
}

// failing is a listener that cannot accept.
type failing struct{ err error }

func (f failing) Accept() (net.Conn, error) { return nil, f.err }
func (f failing) Close() error              { return nil }
func (f failing) Addr() net.Addr            { return &net.TCPAddr{} }

// short is a listener that is out of file descriptors for a while.
type short struct {
	net.Listener
	left int
}

func (l *short) Accept() (net.Conn, error) {
	if l.left > 0 {
		l.left--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestOutOfFileDescriptors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, &short{ln, 4}, catalogOf(t, map[string]string{"a": "one"}), Options{})
	if got := s.get(t, "/db/a"); got.status != 200 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(s.logs.String(), "too many open files") {
		t.Errorf("logged: %s", s.logs)
	}
}

func TestMaxConns(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), Options{MaxConns: 1})
	c := s.dial(t)
	r := bufio.NewReader(c)
	fmt.Fprint(c, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := read(t, r, "GET"); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	if got := s.get(t, "/db/a"); got.status != 503 || !got.closed {
		t.Errorf("one connection too many: %+v", got)
	}
	c.Close()
	eventually(t, "room for a connection", func() bool { return s.get(t, "/db/a").status == 200 })
}
