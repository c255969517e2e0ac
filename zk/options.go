package zk

import (
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"sequins/zk/internal/wire"
)

const defaultPort = "2181"

// Options configures the ensemble to connect to, and how. They are checked where they are configured.
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
	// Logger receives rate-limited log lines.
	Logger *slog.Logger
}

// servers returns the addresses of the servers.
func (o Options) servers() []string {
	all := slices.Clone(o.Servers)
	for i, s := range all {
		if strings.Count(s, ":") != 1 && !strings.HasPrefix(s, "[") { // a name, or a bare IPv6 address
			all[i] = net.JoinHostPort(s, defaultPort)
		}
	}
	return all
}

// acl returns the access control list of the znodes that this package creates.
func (o Options) acl() wire.ACL {
	if o.Auth == "" {
		return wire.World
	}
	return wire.Digest(o.Auth)
}
