package server

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"time"

	"sequins/auth"
	"sequins/metrics"
	"sequins/proxy"
	"sequins/tracing"
	"sequins/version"
)

// Catalog is what the server needs of a node.
type Catalog interface {
	// Set returns the versions of a db, nil if there is no such db. It is
	// called for every request: one atomic load and a look-up, no allocation.
	// It must not keep db.
	Set(db []byte) *version.Set
	// Status describes everything that the node knows; the caller may change
	// the result. It must not wait for anything but memory.
	Status() Status
	// MayExist reports whether a db that Set does not know may exist all the
	// same: the source was never read, or another node serves it.
	MayExist(db []byte) bool
	// Ready reports whether the node should get requests, and if not, the reason
	// in one line: it serves every db that it served before a restart, and has
	// tried every other one that was in the source at the start. If db is not
	// empty, it reports whether that db is being served.
	Ready(db string) (ok bool, reason string)
}

// Proxy asks other nodes for what is not here. A single node has none.
type Proxy interface {
	// Fetch asks the peers of q and returns the first usable answer, whose body
	// is to be closed. It bounds its time itself and does not keep q. An error is
	// context.DeadlineExceeded (errors.Is) where the peers took too long,
	// context.Canceled where ctx ended; any other one means that nobody had it.
	Fetch(ctx context.Context, q *proxy.Query) (*proxy.Answer, error)
}

// Timeouts are how long a client may take.
type Timeouts struct {
	Read  time.Duration // for the whole request, from its first byte
	Idle  time.Duration // between two requests
	Write time.Duration // for taking each 68 KiB of an answer
}

// Options are the settings of a Server. The zero value serves.
type Options struct {
	// ContentType is the Content-Type of a db's values; where it is nil or
	// returns "", application/octet-stream.
	ContentType func(db string) string
	// RequestLog is where a line for each request goes; nil: nowhere.
	RequestLog io.Writer
	// RequestLogSample is how many requests that has one line of, chosen by
	// chance; 0 and 1 are every one.
	RequestLogSample int
	// Timeouts that are zero are 10s, 2m and 30s.
	Timeouts Timeouts
	// MaxConns bounds the open connections. Another 64 are accepted for one
	// request each, which gets 503 unless it is a probe; more are closed at once.
	// 0: 262144.
	MaxConns int
	// Proxy is asked for partitions of other nodes; nil on a single one.
	Proxy Proxy
	// Peers returns the other nodes of the cluster, for the status; nil where
	// there are none. PeerTLS is spoken to them; nil: not.
	Peers   func() []Peer
	PeerTLS *tls.Config
	// PeerSecret is what nodes of the cluster show to each other; "" where none is
	// configured. With it, ?proxy= is answered only to who shows it.
	PeerSecret string
	// Tokens are what may be read by whom; nil: everything by everybody.
	Tokens *auth.Tokens
	// Metrics counts requests; nil: counted for nobody.
	Metrics *metrics.Server
	// Tracer makes spans of requests; nil: there are none.
	Tracer *tracing.Tracer
	// Logger gets what goes wrong; nil: slog.Default().
	Logger *slog.Logger
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	setDefault(&o.Timeouts.Read, 10*time.Second)
	setDefault(&o.Timeouts.Idle, 2*time.Minute)
	setDefault(&o.Timeouts.Write, 30*time.Second)
	if o.MaxConns <= 0 {
		o.MaxConns = 256 << 10
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New().Server
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}
