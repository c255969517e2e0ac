package daemon

import (
	"net"
	"os"
	"time"
)

// notifyTime is the timeout of a message to systemd. The socket buffers a few messages, and a reader that does not
// read must not keep the process from exiting.
const notifyTime = time.Second

// notify tells systemd the state of the process by the protocol of sd_notify(3): a datagram of NAME=value lines to the
// socket named by NOTIFY_SOCKET, whose name begins with @ if it is abstract. Without that variable it does nothing.
func (d *Daemon) notify(state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(notifyTime)) // if this fails, Write fails, too
		_, err = conn.Write([]byte(state))
		_ = conn.Close() // the message was sent or not
	}
	if err != nil {
		d.Log.Warn("systemd cannot be told", "state", state, "error", err)
	}
}
