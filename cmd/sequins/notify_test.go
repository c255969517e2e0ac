package main

import (
	"net"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
)

// systemd listens as systemd does.
func systemd(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	expect.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// hear returns the next message.
func hear(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	buf := make([]byte, 4096)
	conn.SetReadDeadline(time.Now().Add(patience))
	n, err := conn.Read(buf)
	expect.NoError(t, err)
	return string(buf[:n])
}

// A service's life, as systemd sees it.
func TestSystemd(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	conn := systemd(t, socket)
	demoSource(t, dir)
	cmd := command(t, "--bind", "127.0.0.1:0", "--source", "source", "--local-store", "store")
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket, "SEQUINS_SHUTDOWN_DELAY=2s")
	p := start(t, cmd, cmd.StderrPipe)
	if message := hear(t, conn); message != "READY=1" {
		t.Fatalf("first comes %q", message)
	}
	p.waitFor("msg=serving")
	p.signal(syscall.SIGHUP)
	reloading := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9]\d*$`)
	if message := hear(t, conn); !reloading.MatchString(message) {
		t.Errorf("at SIGHUP it says %q", message)
	}
	if message := hear(t, conn); message != "READY=1" {
		t.Errorf("after the reload it says %q", message)
	}
	p.signal(syscall.SIGTERM)
	if message := hear(t, conn); message != "STOPPING=1\nEXTEND_TIMEOUT_USEC=62000000" {
		t.Errorf("at SIGTERM it says %q", message)
	}
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
