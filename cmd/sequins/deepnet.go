package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sequins/events"
	"sequins/store"
)

// addressChecks try the addresses of the listeners.
func (d *deep) addressChecks() []deepCheck {
	var all []deepCheck
	for _, a := range []struct{ key, address string }{{"bind", d.c.Bind}, {"debug.bind", d.c.Debug.Bind}, {"redis.bind", d.c.Redis.Bind}} {
		if a.address != "" {
			all = append(all, deepCheck{a.key, func(ctx context.Context) finding { return d.checkAddress(ctx, a.address) }})
		}
	}
	return all
}

// checkAddress binds an address for a moment. One that is in use may be in use by the sequins of this configuration.
func (d *deep) checkAddress(ctx context.Context, address string) finding {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		if err := ln.Close(); err != nil {
			return failedBy(err)
		}
		return found("%s can be used", address)
	}
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return d.inUse(address)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return failed("%s is no address of this machine: correct it, or use 0.0.0.0", address)
	case errors.Is(err, unix.EACCES):
		return failed("%s may not be used by this user: ports below 1024 need the capability CAP_NET_BIND_SERVICE", address)
	}
	return failedBy(err)
}

// inUse finds out who listens on an address.
func (d *deep) inUse(address string) finding {
	_, port, _ := net.SplitHostPort(address)
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return failedBy(err)
	}
	owner := store.Owner(d.c.LocalStore)
	switch listens, known := listensOn(owner, n); {
	case owner != 0 && listens:
		return found("%s is in use by process %d, the sequins of this local store", address, owner)
	case owner != 0 && !known:
		return warned("%s is in use, maybe by process %d, the sequins of this local store: run this as its user to be sure", address, owner)
	}
	return failed("%s is in use by another process: stop it (ss -ltnp sport = :%d shows it), or use another port", address, n)
}

// listensOn reports whether a process has a socket that listens on a port. known is false if that cannot be found out.
func listensOn(pid, port int) (listens, known bool) {
	sockets := listening(port)
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, false
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && sockets[to] {
			return true, true
		}
	}
	return false, true
}

// listening returns the sockets that listen on a port, as links of /proc/<pid>/fd name them.
func listening(port int) map[string]bool {
	const listens = "0A" // TCP_LISTEN
	sockets := make(map[string]bool)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		doc, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(doc)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != listens {
				continue
			}
			_, hex, _ := strings.Cut(fields[1], ":")
			if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	return sockets
}

// receiverChecks connect to those that are told events, spans and metrics. Nothing is sent to them.
func (d *deep) receiverChecks() []deepCheck {
	var all []deepCheck
	if t, err := target(&d.c.Events); err == nil && t != nil {
		all = append(all, deepCheck{"events.webhook", func(ctx context.Context) finding { return checkWebhookTarget(ctx, t) }})
	}
	if e := d.c.Tracing.OTLPEndpoint; e != "" {
		all = append(all, deepCheck{"tracing.otlp_endpoint", func(ctx context.Context) finding {
			return checkURL(ctx, e, os.Getenv("OTEL_EXPORTER_OTLP_CERTIFICATE"))
		}})
	}
	if a := d.c.Datadog.URL; a != "" {
		all = append(all, deepCheck{"datadog.url", func(ctx context.Context) finding { return checkAgent(ctx, a) }})
	}
	return all
}

func checkWebhookTarget(ctx context.Context, t *events.Target) finding {
	return checkURL(ctx, t.URL, "")
}

// checkURL resolves and connects to the host of a URL, with TLS for https. It shows only the host, because the rest can hold a password.
func checkURL(ctx context.Context, raw, ca string) finding {
	u, err := url.Parse(raw)
	if err != nil {
		return failed("it is not a URL")
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80"))
	dial := new(net.Dialer).DialContext
	if u.Scheme == "https" {
		pool, err := readPool("OTEL_EXPORTER_OTLP_CERTIFICATE", ca)
		if err != nil {
			return failedBy(err)
		}
		dial = (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return failedBy(err)
	}
	_ = conn.Close() // nothing was sent
	return found("%s can be reached", address)
}

// checkAgent resolves the address of an agent, or looks for its socket. Whether it receives datagrams cannot be seen.
func checkAgent(ctx context.Context, address string) finding {
	if path, socket := strings.CutPrefix(address, "unix://"); socket {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return failedBy(err)
		case info.Mode()&os.ModeSocket == 0:
			return failed("%s is no socket", path)
		}
		return found("%s is a socket", path)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return failedBy(err)
	}
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return failedBy(err)
	}
	return found("%s can be resolved; datagrams have no answer", address)
}

// leastDescriptors is the limit of open files below which a node can hardly serve.
const leastDescriptors = 4096

func (d *deep) checkDescriptors(context.Context) finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return failedBy(err)
	}
	most := maxConnections(d.c.MaxConnections)
	text := fmt.Sprintf("this shell may have %d files open, and %d connections with that; systemd and containers have limits of their own", limit.Cur, most)
	switch {
	case limit.Cur < leastDescriptors:
		return warned("%s: raise it (ulimit -n, LimitNOFILE)", text)
	case uint64(most) > limit.Cur/4*3:
		return warned("%s: max_connections leaves too few for blocks and other nodes", text)
	}
	return found("%s", text)
}
