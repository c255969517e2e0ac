package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long something may take that has to happen, on a busy machine.
const patience = time.Minute

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
