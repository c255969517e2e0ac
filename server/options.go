package server

import (
	"crypto/tls"
	"io"
	"log/slog"
	"time"

	"sequins/auth"
	"sequins/metrics"
)

// Catalog is what the server needs of a node.
type Catalog interface {
	// Status describes everything that the node knows; the caller may change
	// the result. It must not wait for anything but memory.
	Status() Status
	// Ready reports whether the node should get requests, and if not, the reason
	// in one line: it serves every db that it served before a restart, and has
	// tried every other one that was in the source at the start. If db is not
	// empty, it reports whether that db is being served.
	Ready(db string) (ok bool, reason string)
}

// Timeouts are how long a client may take.
type Timeouts struct {
	Read  time.Duration // for the whole request, from its first byte
	Idle  time.Duration // between two requests
	Write time.Duration // for taking each 68 KiB of an answer
}

// Options are the settings of a Server. The zero value serves.
type Options struct {
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
	// Peers returns the other nodes of the cluster, for the status; nil where
	// there are none. PeerTLS is spoken to them; nil: not.
	Peers   func() []Peer
	PeerTLS *tls.Config
	// PeerSecret is what nodes of the cluster show to each other; "" where none is
	// configured. With it, ?proxy= is answered only to who shows it.
	PeerSecret string
	// Tokens are who may read what; nil: everybody may read everything.
	Tokens *auth.Tokens
	// Metrics counts requests; nil: counted for nobody.
	Metrics *metrics.Server
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
