package reads

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"sequins/internal/limitlog"
	"sequins/metrics"
	"sequins/proxy"
	"sequins/tracing"
	"sequins/version"
)

// Catalog is what a Reader needs of a node.
type Catalog interface {
	// Set returns the versions of a db, nil if there is no such db. It is called for every request: one
	// atomic load and a lookup, no allocation. It must not keep db.
	Set(db []byte) *version.Set
	// MayExist reports whether a db that Set does not know may exist all the same: the source was never
	// read, or another node serves it.
	MayExist(db []byte) bool
}

// Proxy asks other nodes for what is not here. A single node has none.
type Proxy interface {
	// Fetch asks the peers of q and returns the first usable answer, whose body is to be closed. It bounds
	// its time itself and does not keep q. An error is context.DeadlineExceeded (errors.Is) where the peers
	// took too long, context.Canceled where ctx ended; any other one means that no peer could answer.
	Fetch(ctx context.Context, q *proxy.Query) (*proxy.Answer, error)
}

// Options are the settings of a Reader. The zero value reads local blocks.
type Options struct {
	// ContentType returns the media type of a db's values. If it is nil or returns "", or what cannot be in
	// a header, the type is application/octet-stream.
	ContentType func(db string) string
	// Proxy is asked for partitions of other nodes; nil on a single node.
	Proxy Proxy
	// PeerSecret is the credential that this node shows to others of its cluster; "": none.
	PeerSecret string
	// Name is what this node is called in explanations; "" stands for localhost.
	Name string
	// Metrics counts requests; nil counts them nowhere.
	Metrics *metrics.Server
	// Tracer makes spans of requests; nil makes none.
	Tracer *tracing.Tracer
	// Logger gets errors, at most one a second; nil stands for slog.Default().
	Logger *slog.Logger
}

// Reader is what the Reads of a node share. It is safe for concurrent use.
type Reader struct {
	catalog Catalog
	opts    Options
	log     *limitlog.Logger
	secret  []byte // Options.PeerSecret

	contentType atomic.Pointer[func(db string) string]
	databases   atomic.Pointer[map[string]*database]
	mu          sync.Mutex // of changes to databases
	stripes     atomic.Uint32

	// ending is canceled by Stop; requests to other nodes end with it.
	ending context.Context
	stop   context.CancelFunc
}

// New returns a Reader of what the catalog has. It is to be stopped.
func New(c Catalog, o Options) *Reader {
	if o.Metrics == nil {
		o.Metrics = metrics.New().Server
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Name == "" {
		o.Name = "localhost"
	}
	rd := &Reader{catalog: c, opts: o, log: limitlog.New(o.Logger), secret: []byte(o.PeerSecret)}
	rd.ending, rd.stop = context.WithCancel(context.Background())
	rd.databases.Store(&map[string]*database{})
	rd.SetContentType(o.ContentType)
	return rd
}

// Stop ends the requests to other nodes that are waited for.
func (rd *Reader) Stop() { rd.stop() }

// SetContentType replaces Options.ContentType for the reads from now on.
func (rd *Reader) SetContentType(f func(db string) string) {
	if f == nil {
		f = func(string) string { return "" }
	}
	rd.contentType.Store(&f)
}

// NewRead returns a Read to be used for one request after the other.
func (rd *Reader) NewRead() Read { return Read{reader: rd, stripe: rd.stripes.Add(1)} }
