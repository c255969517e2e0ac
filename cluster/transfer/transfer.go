package transfer

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"sequins/internal/content"
	"sequins/observe/metrics"
	"sequins/store"
	"sequins/version"
)

const (
	// The media types of the answers, which nodes of upstream's kind do not send.
	manifestType = "application/vnd.sequins.manifest+json"
	blockType    = "application/vnd.sequins.block"

	// madeHeader is the header field of a block with a store.Made as JSON, if that is known.
	madeHeader = "X-Sequins-Made"

	// dialTimeout limits the time to connect to another node.
	dialTimeout = 3 * time.Second
)

// Options are the settings of a Transfer. Set is required.
type Options struct {
	// Set returns the versions of a db, nil if there is no such db.
	Set func(db []byte) *version.Set
	// Store has the manifests, and what blocks were made from; nil if they are not given.
	Store *store.Store
	// Serving returns the contents that this node serves, by db, for other nodes; nil is none.
	Serving func() map[string]content.Content
	// Fits returns an error if the disk has no room for a block of some bytes; nil always has room.
	Fits func(bytes int64) error
	// TLS enables TLS to other nodes, and Secret is the secret of the cluster, or "".
	TLS    *tls.Config
	Secret string
	// Metrics counts copies.
	Metrics metrics.Transfer
	// Logger receives a line for each block that is refused; nil means slog.Default().
	Logger *slog.Logger
	// LeastRate is how many bytes per second the other side of a copy has to receive or send on average, after Patience, unless Limits do not
	// allow as many. 0 means 256 KiB, and 10 seconds.
	LeastRate float64
	Patience  time.Duration
	// Queue is how long Fetch waits for a place; 0 means 10 minutes.
	Queue time.Duration
}

// Transfer is one node's end of all copies. It is safe for concurrent use. It starts no goroutines but those of idle
// connections, which Close ends.
type Transfer struct {
	o      Options
	give   *lane
	take   *lane
	client *http.Client
	scheme string
	// ending is canceled by Close.
	ending context.Context
	end    context.CancelFunc
}

// New returns a Transfer that copies one block at a time, see SetLimits. The caller must close it.
func New(o Options) *Transfer {
	o.LeastRate, o.Patience = cmp.Or(o.LeastRate, 256<<10), cmp.Or(o.Patience, 10*time.Second)
	o.Queue, o.Logger = cmp.Or(o.Queue, 10*time.Minute), cmp.Or(o.Logger, slog.Default())
	t := &Transfer{o: o, give: newLane(), take: newLane(), scheme: "http", client: &http.Client{
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSClientConfig: o.TLS, ResponseHeaderTimeout: o.Patience, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10, DisableCompression: true},
		// Do not send the credential of the cluster elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if o.TLS != nil {
		t.scheme = "https"
	}
	t.ending, t.end = context.WithCancel(context.Background())
	return t
}

// SetLimits changes the limits, also of running copies.
func (t *Transfer) SetLimits(l Limits) {
	t.give.set(l)
	t.take.set(l)
}

// Close ends the copies that are given, and closes idle connections. Requests that arrive later get 503.
func (t *Transfer) Close() {
	t.end()
	t.client.CloseIdleConnections()
}
