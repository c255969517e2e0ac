package main

import (
	"net"
	"path/filepath"
	"regexp"
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
