package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// systemd listens as systemd does.
func systemd(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// hear returns the next message that is no sign of life, and how many of those came before it.
func hear(t *testing.T, conn *net.UnixConn) (message string, signs int) {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		conn.SetReadDeadline(time.Now().Add(patience))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("after %d signs of life: %v", signs, err)
		}
		if message = string(buf[:n]); message != "WATCHDOG=1" {
			return message, signs
		}
		signs++
	}
}

// A service's life, as systemd sees it.
func TestSystemd(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	conn := systemd(t, socket)
	demoSource(t, dir)
	cmd := command(t, "--bind", "127.0.0.1:0", "--source", "source", "--local-store", "store")
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=30000")
	p := start(t, cmd, cmd.StderrPipe)
	if message, signs := hear(t, conn); message != "READY=1" || signs != 0 {
		t.Fatalf("first comes %q after %d signs of life", message, signs)
	}
	p.waitFor("msg=serving")
	buf := make([]byte, 4096)
	for range 3 {
		conn.SetReadDeadline(time.Now().Add(patience))
		if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "WATCHDOG=1" {
			t.Fatalf("no sign of life: %q, %v", buf[:n], err)
		}
	}
	p.signal(syscall.SIGHUP)
	reloading := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9]\d*$`)
	if message, _ := hear(t, conn); !reloading.MatchString(message) {
		t.Errorf("at SIGHUP it says %q", message)
	}
	if message, _ := hear(t, conn); message != "READY=1" {
		t.Errorf("after the reload it says %q", message)
	}
	p.signal(syscall.SIGTERM)
	if message, _ := hear(t, conn); message != "STOPPING=1" {
		t.Errorf("at SIGTERM it says %q", message)
	}
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// A manager that does not read does not stop what tells it.
func TestNotifierIsNotHeldUp(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	systemd(t, socket)
	var said bytes.Buffer
	n := &notifier{socket: socket, log: slog.New(slog.NewTextHandler(&said, nil))}
	for deadline := time.Now().Add(patience); said.Len() == 0; { // as soon as the socket has taken all it can
		if n.send("WATCHDOG=1"); time.Now().After(deadline) {
			t.Fatal("the socket takes any number of messages")
		}
	}
	if !strings.Contains(said.String(), "systemd cannot be told") || !strings.Contains(said.String(), "timeout") {
		t.Errorf("logged: %s", &said)
	}
}

// A node that does not answer shows no signs of life, and is not ready in the first place.
func TestWatchdogOfADeadNode(t *testing.T) {
	for _, answersOnce := range []bool{true, false} {
		first := make(chan bool, 1)
		first <- answersOnce
		hung := make(chan struct{})
		dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case answer := <-first:
				if answer {
					return
				}
			default:
			}
			select {
			case <-hung:
			case <-r.Context().Done():
			}
		}))
		socket := filepath.Join(t.TempDir(), "notify")
		conn := systemd(t, socket)
		n := &notifier{socket: socket, watchdog: 30 * time.Millisecond, log: slog.New(slog.DiscardHandler)}
		err := n.follow(t.Context(), dead.URL, func(context.Context) error {
			var heard []string
			if answersOnce {
				message, signs := hear(t, conn)
				if heard = append(heard, message); signs > 0 {
					t.Errorf("%d signs of life before it is ready", signs)
				}
			}
			conn.SetReadDeadline(time.Now().Add(10 * n.watchdog))
			for buf := make([]byte, 4096); ; {
				k, err := conn.Read(buf)
				if err != nil {
					break
				}
				heard = append(heard, string(buf[:k]))
			}
			if got := strings.Join(heard, " "); got != map[bool]string{true: "READY=1", false: ""}[answersOnce] {
				t.Errorf("a node that answers once (%v) is told of as %q", answersOnce, got)
			}
			close(hung)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		dead.Close()
	}
}

// What systemd puts into the environment.
func TestNotifierEnvironment(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Setenv("NOTIFY_SOCKET", "@abstract")
	t.Setenv("WATCHDOG_USEC", "3000000")
	if n := newNotifier(log); n.socket != "@abstract" || n.watchdog != 3*time.Second {
		t.Errorf("%+v", n)
	}
	t.Setenv("WATCHDOG_PID", "1") // somebody else is watched
	if n := newNotifier(log); n.watchdog != 0 {
		t.Errorf("%+v", n)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	n := newNotifier(log)
	n.send("READY=1")
	ran := false
	if err := n.follow(t.Context(), "", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("without systemd: %v, %v", ran, err)
	}
}
