package daemon

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
)

// A manager that does not read does not stop what tells it.
func TestNotifyIsNotHeldUp(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	expect.NoError(t, err)
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	var said bytes.Buffer
	d := &Daemon{Log: slog.New(slog.NewTextHandler(&said, nil))}
	for range 100_000 { // the socket is full long before
		if d.notify("READY=1"); said.Len() > 0 {
			break
		}
	}
	if !strings.Contains(said.String(), "systemd cannot be told") || !strings.Contains(said.String(), "timeout") {
		t.Errorf("logged: %s", &said)
	}
	said.Reset()
	t.Setenv("NOTIFY_SOCKET", "")
	if d.notify("READY=1"); said.Len() > 0 {
		t.Errorf("without systemd: %s", &said)
	}
}
