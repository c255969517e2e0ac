package zk

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"sequins/zk/internal/wire"
)

const defaultPort = "2181"

// Options configures the ensemble to connect to, and how.
type Options struct {
	// Servers are the ensemble's servers: host:port, or host for port 2181. Names are resolved for each connection.
	Servers []string
	// ConnectTimeout bounds one attempt to connect to one server, the TLS handshake included.
	ConnectTimeout time.Duration
	// SessionTimeout is how long the ensemble keeps what was published without hearing from this node. The servers may
	// change it within their limits.
	SessionTimeout time.Duration
	// Root is the directory, like /sequins/v1, that all paths are relative to. It is created when needed.
	Root string
	// Auth is user:password, or empty. If set, only that user can read and change what is published.
	Auth string
	// TLS enables TLS if it is not nil. Without a ServerName, certificates are verified against the host names in
	// Servers.
	TLS *tls.Config
	// Logger receives rate-limited log lines. The default is slog.Default.
	Logger *slog.Logger
}

// withDefaults validates the options and fills in defaults.
func (o Options) withDefaults() (Options, error) {
	if len(o.Servers) == 0 {
		return o, errors.New("zk: no servers")
	}
	servers := make([]string, len(o.Servers))
	for i, s := range o.Servers {
		server, err := withPort(s)
		if err != nil {
			return o, fmt.Errorf("zk: server %q: %w", s, err)
		}
		servers[i] = server
	}
	o.Servers = servers
	if o.ConnectTimeout <= 0 || o.SessionTimeout < time.Millisecond {
		return o, fmt.Errorf("zk: connect timeout %v and session timeout %v must be more than 0", o.ConnectTimeout, o.SessionTimeout)
	}
	if err := checkRoot(o.Root); err != nil {
		return o, err
	}
	if user, _, found := strings.Cut(o.Auth, ":"); o.Auth != "" && (!found || user == "") {
		return o, errors.New("zk: auth is not of the form user:password") // the error must not contain the password
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

func withPort(server string) (string, error) {
	if strings.Count(server, ":") != 1 && !strings.HasPrefix(server, "[") { // a name, or a bare IPv6 address
		server = net.JoinHostPort(server, defaultPort)
	}
	return server, checkAddr(server)
}

func checkRoot(root string) error {
	rest, absolute := strings.CutPrefix(root, "/")
	for part := range strings.SplitSeq(rest, "/") {
		if !absolute || part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\x00") {
			return fmt.Errorf("zk: root %q is not a path like /sequins/v1", root)
		}
	}
	return nil
}

// acl returns the access control list of the znodes that this package creates.
func (o Options) acl() wire.ACL {
	if o.Auth == "" {
		return wire.World
	}
	return wire.Digest(o.Auth)
}
