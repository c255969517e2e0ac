package conns_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"sequins/internal/conns"
)

// accepted returns both ends of a TCP connection; near is one that a Patient has accepted.
func accepted(t *testing.T) (near net.Conn, far *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if near, err = conns.Patient(ln, slog.New(slog.DiscardHandler)).Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); dialed.Close() })
	return near, dialed.(*net.TCPConn)
}

// Both directions carry more than the buffers of the kernel hold, and end with the client's end.
func TestTransfers(t *testing.T) {
	near, far := accepted(t)
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 1<<20)
	go func() {
		far.Write(sent)
		far.CloseWrite()
	}()
	received, err := io.ReadAll(near)
	if err != nil || !bytes.Equal(received, sent) {
		t.Fatalf("received %d bytes of %d, and %v", len(received), len(sent), err)
	}
	if n, err := near.Read(nil); n != 0 || err != nil {
		t.Errorf("an empty read: %d, %v", n, err)
	}
	go func() {
		if n, err := near.Write(sent); n != len(sent) || err != nil {
			t.Errorf("wrote %d bytes of %d: %v", n, len(sent), err)
		}
		near.Close()
	}()
	if received, err = io.ReadAll(far); err != nil || !bytes.Equal(received, sent) {
		t.Errorf("the client has received %d bytes of %d, and %v", len(received), len(sent), err)
	}
}

func TestDeadlines(t *testing.T) {
	near, far := accepted(t)
	b := make([]byte, 1<<20)
	near.SetDeadline(time.Now().Add(time.Millisecond))
	var op *net.OpError
	if n, err := near.Read(b); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) || op.Op != "read" {
		t.Errorf("read %d bytes: %v", n, err)
	}
	written := 0
	for {
		n, err := near.Write(b)
		if written += n; err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			break
		}
	}
	near.SetDeadline(time.Time{})
	far.Write([]byte{1})
	if n, err := near.Read(b); n != 1 || err != nil || b[0] != 1 {
		t.Errorf("after the deadline: %d, %v", n, err)
	}
	if n, err := io.CopyN(io.Discard, far, int64(written)); err != nil {
		t.Errorf("the client has received %d bytes of %d: %v", n, written, err)
	}
}

func TestEndsOfConnections(t *testing.T) {
	near, far := accepted(t)
	far.SetLinger(0)
	far.Close()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && err != io.EOF {
		t.Errorf("a read after a reset: %v", err)
	}
	if _, err := near.Write(make([]byte, 1)); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a write after a reset: %v", err)
	}
	near, _ = accepted(t)
	time.AfterFunc(time.Millisecond, func() { near.Close() })
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read when it is closed: %v", err)
	}
	if _, err := near.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write when it is closed: %v", err)
	}
}
