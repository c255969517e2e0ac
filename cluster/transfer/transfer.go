package transfer

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/store"
	"sequins/version"
)

const (
	// The media types of the answers, which nodes of upstream's kind do not send.
	manifestType = "application/vnd.sequins.manifest+json"
	servingType  = "application/vnd.sequins.serving+json"
	blockType    = "application/vnd.sequins.block"

	// streams is how many blocks are given at a time, and how many each Fill receives.
	streams = 2
	// burst is how many bytes may pass at once, whatever the bandwidth. Blocks are read in pieces of at most this size.
	burst = 256 << 10
	// defaultPatience is how long the other side of a copy may take in addition to the time for defaultRate, in bytes per second.
	defaultPatience = 10 * time.Second
	defaultRate     = 256 << 10
)

// Options are the settings of a Transfer.
type Options struct {
	// Set returns the versions of a db, nil if there is no such db.
	Set func(db []byte) *version.Set
	// Store has the manifests.
	Store *store.Store
	// Serving returns the contents that this node serves, by db, for other nodes.
	Serving func() map[string]content.Content
	// Fits returns an error if the disk has no room for a block of some bytes.
	Fits func(bytes int64) error
	// Nodes asks other nodes.
	Nodes *wire.Client
	// Metrics counts copies.
	Metrics metrics.Transfer
	// Logger receives a line for each block that is not sent completely.
	Logger *slog.Logger
}

// Transfer is one node's end of all copies. It is safe for concurrent use. It starts no goroutines.
type Transfer struct {
	o          Options
	give, take *rate.Limiter
	places     *semaphore.Weighted // for the blocks that are given
	receiving  *semaphore.Weighted // places for those that are received, by all Fills
	leastRate  float64
	patience   time.Duration
	// ending is canceled by Close.
	ending context.Context
	end    context.CancelFunc
}

// New returns a Transfer without a limit of the bandwidth. The caller must close it.
func New(o Options) *Transfer {
	t := &Transfer{o: o, give: rate.NewLimiter(rate.Inf, burst), take: rate.NewLimiter(rate.Inf, burst), places: semaphore.NewWeighted(streams),
		receiving: semaphore.NewWeighted(streams), leastRate: defaultRate, patience: defaultPatience}
	t.ending, t.end = context.WithCancel(context.Background())
	return t
}

// SetBandwidth limits the bytes per second that are given, and those that are received, also of running copies; 0 is unlimited.
func (t *Transfer) SetBandwidth(bytes float64) {
	limit := rate.Inf
	if bytes > 0 {
		limit = rate.Limit(bytes)
	}
	t.give.SetLimit(limit)
	t.take.SetLimit(limit)
}

// Close ends the copies that are given. Requests that arrive later get 503.
func (t *Transfer) Close() { t.end() }

// A pulse measures how fast the other side is: the time that a copy waits for it. It ends copies that would keep a place
// for long. Bytes that were fast earn no more than the patience, so that a stall is noticed as soon after many bytes as at the start.
type pulse struct {
	least    float64       // bytes per second
	patience time.Duration // that may be waited in addition
	left     time.Duration // how long the other side may take until the next byte
}

// newPulse returns the pulse of a copy in a direction. If the other node gives as much as it may, the limit may explain half of its share.
func (t *Transfer) newPulse(l *rate.Limiter) pulse {
	return pulse{least: min(t.leastRate, float64(l.Limit())/(2*streams)), patience: t.patience, left: t.patience}
}

// add counts n bytes that took a while, and reports whether the other side is fast enough.
func (p *pulse) add(n int, took time.Duration) bool {
	p.left += time.Duration(float64(n)/p.least*float64(time.Second)) - took
	fast := p.left >= 0
	p.left = min(p.left, p.patience)
	return fast
}
