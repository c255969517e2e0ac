package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/server/auth"
)

// Catalog is the part of a node that the server uses.
type Catalog interface {
	// Status returns the state of the node; the caller may modify the result. It must not do I/O or wait.
	Status() status.Status
	// Ready reports whether the node should receive requests, and if not, the reason in one line. A node is
	// ready when it serves every db that it served before a restart and has tried every other db that was in
	// the source at the start. If db is not empty, Ready reports whether that db is served.
	Ready(db string) (ok bool, reason string)
	// Events returns the last events of a db, or of the node if db is empty, the newest first.
	Events(db string) []status.Event
}

// Timeouts limit how long a client may take.
type Timeouts struct {
	Read  time.Duration // for a whole request, from its first byte
	Idle  time.Duration // between two requests
	Write time.Duration // to receive each 68 KiB of an answer
}

// Options are the settings of a Server. The zero value is valid for clients: differences and requests of other nodes need Diff, Blocks and Serving.
type Options struct {
	// RequestLog receives the lines of the request log; nil disables it.
	RequestLog io.Writer
	// Timeouts are the timeouts of clients. The defaults are 10s, 2m and 30s.
	Timeouts Timeouts
	// MaxConns limits the open connections, together with those of others in Connections. Another 64 are accepted for one request each, which gets 503
	// unless it is a probe; further ones are closed immediately. 0 means 262144.
	MaxConns int
	// Diff answers a request for the differences between two versions of a db, with a query, as lines of JSON or as one object. If code is not 200, it
	// has written nothing, and text is the reason.
	Diff func(ctx context.Context, w http.ResponseWriter, db, query string, lines bool) (code int, text string)
	// Blocks answers a request of another node for a block of a db, or for what is here, like Diff; code 0 means that the answer broke off.
	Blocks func(w http.ResponseWriter, req *http.Request, db, query string) (code int, text string)
	// Serving answers a request of another node for what this one serves of each db.
	Serving func(w http.ResponseWriter)
	// Peers returns the other nodes of the cluster, for the status; nil on a single node. Nodes, which is required, asks them.
	Peers func() []status.Peer
	Nodes *wire.Client
	// PeerSecret is the secret of the cluster; "" if none is configured. With a secret, ?proxy= is answered
	// only for requests that carry it.
	PeerSecret string
	// Settings returns the settings that all nodes of a cluster should have alike, for the others; it may be nil.
	Settings func() status.Settings
	// Tokens are the access rights; nil allows everything.
	Tokens *auth.Tokens
	// Metrics counts requests; it may be nil.
	Metrics *metrics.Server
	// Logger logs errors; nil means slog.Default().
	Logger *slog.Logger
}
