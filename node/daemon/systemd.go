package daemon

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"sequins/internal/sleep"
)

// A notifier reports the state of the process to systemd by the protocol of sd_notify(3): datagrams of
// NAME=value lines to the socket named by NOTIFY_SOCKET. Without that variable it does nothing.
type notifier struct {
	socket   string        // path; an abstract socket begins with @
	secure   *tls.Config   // for connections to the node; nil without TLS
	watchdog time.Duration // interval within which systemd expects a message; 0 if disabled
	log      *slog.Logger
}

// newNotifier reads the environment that systemd sets for a service.
func newNotifier(log *slog.Logger) *notifier {
	n := &notifier{socket: os.Getenv("NOTIFY_SOCKET"), log: log}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return n
	}
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// itself returns the URL of the node for requests of its own process, and prepares the notifier for them.
func (d *Daemon) itself() string {
	if d.keys == nil {
		return "http://" + d.Address
	}
	d.systemd.secure = d.keys.client()
	d.systemd.secure.InsecureSkipVerify = true // it is this process
	return "https://" + d.Address
}

// notifyTime is the timeout of a message. The socket buffers a few messages, and a reader that does not
// read must not keep the process from exiting.
const notifyTime = time.Second

func (n *notifier) send(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(notifyTime)) // if this fails, Write fails, too
		_, err = conn.Write([]byte(state))
		_ = conn.Close() // the message was sent or not
	}
	if err != nil {
		n.log.Warn("systemd cannot be told", "state", state, "error", err)
	}
}

// follow runs a node that answers at an address, and reports to systemd: that it is ready, after its
// first answer; that it is alive, as long as it answers; and that it is stopping, when ctx ends. Any
// answer counts: a node at its limit of connections is busy, not dead.
func (n *notifier) follow(ctx context.Context, address string, run func(context.Context) error) error {
	if n.socket == "" {
		return run(ctx)
	}
	running, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	defer context.AfterFunc(ctx, func() { n.send("STOPPING=1") })()
	go n.tell(ctx, running, address)
	return run(ctx)
}

// tell sends messages until running ends. After the end of ctx it reports the node as alive without a
// check, because timeouts bound the shutdown.
func (n *notifier) tell(ctx, running context.Context, address string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: n.secure}}
	if n.answers(ctx, client, address) {
		n.send("READY=1")
	}
	client.Timeout = n.watchdog / 3
	for n.watchdog > 0 && sleep.For(running, n.watchdog/3) == nil {
		if ctx.Err() != nil || n.answers(ctx, client, address) {
			n.send("WATCHDOG=1")
		}
	}
}

// answers reports whether the node answers a request.
func (n *notifier) answers(ctx context.Context, client *http.Client, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/livez", nil)
	if err != nil {
		n.log.Error("bug: the node's own address is no address", "address", address, "error", err)
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			n.log.Warn("this node does not answer itself", "address", address, "error", err)
		}
		return false
	}
	_ = resp.Body.Close() // any answer counts
	return true
}
