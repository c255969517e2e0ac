package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A notifier tells systemd how the process is, by the protocol of sd_notify(3): datagrams of NAME=value
// lines to the socket that is named by NOTIFY_SOCKET. Without that all of it does nothing.
type notifier struct {
	socket   string        // path; with a leading NUL, an abstract one
	secure   *tls.Config   // how the node is spoken to; nil: not
	watchdog time.Duration // how long systemd waits for a sign of life; 0: it does not
	log      *slog.Logger
}

// newNotifier reads the environment that systemd gives to a service.
func newNotifier(log *slog.Logger) *notifier {
	n := &notifier{socket: os.Getenv("NOTIFY_SOCKET"), log: log}
	if abstract, ok := strings.CutPrefix(n.socket, "@"); ok {
		n.socket = "\x00" + abstract
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return n
	}
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// reloading says that the configuration is being read again, and when that was, by the clock that systemd
// counts with.
func (n *notifier) reloading() {
	n.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonicMicros()))
}

// reloaded says that it has been.
func (n *notifier) reloaded() { n.send("READY=1") }

// notifyTime is how long a message may take. The socket takes a few that nobody has read,
// and no more: whoever does not read must not keep the process from ending.
const notifyTime = time.Second

func (n *notifier) send(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(notifyTime)) // if it cannot be set it is not needed either: Write fails
		_, err = conn.Write([]byte(state))
		_ = conn.Close() // it has been sent, or not
	}
	if err != nil {
		n.log.Warn("systemd cannot be told", "state", state, "error", err)
	}
}

// follow runs a node that answers at an address, and tells of it: that it is ready, when it has answered
// the first request; that it is alive, as long as it answers; and that it is stopping, when ctx ends.
// Whoever answers on the address counts: a node without room for one more connection is busy, not dead.
func (n *notifier) follow(ctx context.Context, address string, run func(context.Context) error) error {
	if n.socket == "" {
		return run(ctx)
	}
	running, ended := context.WithCancel(context.WithoutCancel(ctx))
	var telling sync.WaitGroup
	telling.Go(func() { n.tell(ctx, running, address) })
	err := run(ctx)
	ended()
	telling.Wait()
	return err
}

// tell goes on until running ends. What happens between the end of ctx and then is bounded by the timeouts
// of the shutdown, so systemd gets its signs of life without a question.
func (n *notifier) tell(ctx, running context.Context, address string) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: n.secure}
	if n.answers(ctx, &http.Client{Transport: transport}, address) {
		n.send("READY=1")
	}
	var tick <-chan time.Time
	if n.watchdog > 0 {
		ticker := time.NewTicker(n.watchdog / 3)
		defer ticker.Stop()
		tick = ticker.C
	}
	client := &http.Client{Transport: transport, Timeout: n.watchdog / 3}
	stopping := ctx.Done()
	for {
		select {
		case <-stopping:
			n.send("STOPPING=1")
			stopping = nil
		case <-tick:
			if stopping == nil || n.answers(ctx, client, address) {
				n.send("WATCHDOG=1")
			}
		case <-running.Done():
			return
		}
	}
}

// answers says whether the node answers a request.
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
	_ = resp.Body.Close() // that there was an answer is all
	return true
}
