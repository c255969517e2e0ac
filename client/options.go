package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/internal/wire"
)

// Options are the settings of a Client. Only Addrs is required.
type Options struct {
	// Addrs are the nodes from which the client learns the others: host:port, or http:// or https:// and
	// host:port, all with the same scheme. They are asked for any key, so they may be load balancers. Name
	// several, because the client must reach one to begin with.
	Addrs []string
	// Token is sent as "Authorization: Bearer <Token>" to the nodes of Addrs and of the map. If Addrs are https,
	// it is never sent over http.
	Token string
	// TLS is the configuration for https; nil verifies certificates against the roots of the system. If it is
	// set, Addrs without a scheme are https.
	TLS *tls.Config

	// Timeout limits a call, in addition to its context. 0 means 5s.
	Timeout time.Duration
	// AttemptTimeout is the silence after which a node counts as failed: it neither takes more of a request nor sends more
	// of its answer. 0 means 1s.
	AttemptTimeout time.Duration
	// HedgeBudget is the maximum number of requests that are sent to a second node because the first is late, as a
	// share of all calls. Of those that stay in Zone, one in 200 is sent to another zone as well. 0 means 0.1; a negative number disables them.
	HedgeBudget float64
	// RefreshPeriod is the time between two requests for the map of a db that is in use, ± 25 %. 0 means 30s.
	RefreshPeriod time.Duration

	// SeedsOnly asks only Addrs, for clients that do not reach the nodes at the addresses by which these know each
	// other, such as clients outside of a private network with a load balancer.
	SeedsOnly bool

	// Zone is the zone of the program, as sharding.zone names that of a node: of the nodes that hold a key, those in this zone
	// are asked before others. "" prefers none.
	Zone string

	// MaxValue limits the size of a value, MaxBatch that of the values of a MultiGet together, in bytes. 0 means
	// 64 MiB, which is also a node's default for batches.
	MaxValue, MaxBatch int64
	// MaxConnsPerNode limits the connections to a node, for Get and for MultiGet each. 0 means 256. Calls wait for
	// a connection when all are in use.
	MaxConnsPerNode int
	// Transport sends the requests, for instance with traces or by way of a proxy; nil means connections that the client
	// manages, directly to the nodes whatever HTTP_PROXY says. With a Transport, TLS and MaxConnsPerNode are not used.
	Transport http.RoundTripper
}

const mebibyte = 1 << 20

// zoneOf returns the zone of a node of a map, seen from Zone.
func (o *Options) zoneOf(m *wire.Partitions, node int) zone {
	switch {
	case o.Zone == "" || len(m.Zones) == 0 || m.Zones[node] == "":
		return unknownZone
	case m.Zones[node] == o.Zone:
		return sameZone
	}
	return otherZone
}

func (o Options) withDefaults() Options {
	setDefault(&o.Timeout, 5*time.Second)
	setDefault(&o.AttemptTimeout, time.Second)
	setDefault(&o.RefreshPeriod, 30*time.Second)
	setDefault(&o.MaxValue, 64*mebibyte)
	setDefault(&o.MaxBatch, 64*mebibyte)
	setDefault(&o.MaxConnsPerNode, 256)
	if o.HedgeBudget == 0 {
		o.HedgeBudget = 0.1
	}
	return o
}

func setDefault[T int | int64 | time.Duration](to *T, value T) {
	if *to <= 0 {
		*to = value
	}
}

// seeds returns the addresses of Addrs, each once, and their scheme.
func (o Options) seeds() (scheme string, addrs []string, err error) {
	for _, a := range o.Addrs {
		s, addr, err := splitAddr(a, o.TLS != nil)
		switch {
		case err != nil:
			return "", nil, err
		case scheme != "" && scheme != s:
			return "", nil, fmt.Errorf("client: %s is %s and others are %s: use one scheme for all addresses", a, s, scheme)
		}
		scheme = s
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return "", nil, errors.New("client: Options.Addrs is empty: name at least one node as host:port")
	}
	return scheme, addrs, nil
}

// splitAddr parses one of Options.Addrs.
func splitAddr(a string, secure bool) (scheme, addr string, err error) {
	scheme, addr = "http", a
	if secure {
		scheme = "https"
	}
	if strings.Contains(a, "://") {
		u, err := url.Parse(a)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return "", "", fmt.Errorf("client: address %q: want host:port, http://host:port or https://host:port", a)
		}
		scheme, addr = u.Scheme, u.Host
	}
	if !validAddr(addr) {
		return "", "", fmt.Errorf("client: address %q: want a host and a port", a)
	}
	return scheme, addr, nil
}

// maxAddr is the maximum length of an address: a DNS name and a port.
const maxAddr = 253 + len(":65535")

// validAddr reports whether s is host:port and can stand in a URL.
func validAddr(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || len(s) > maxAddr {
		return false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return false
	}
	return strings.IndexFunc(host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_:", r))
	}) < 0
}
