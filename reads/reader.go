package reads

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/limitlog"
	"sequins/observe/metrics"
	"sequins/observe/tracing"
	"sequins/proxy"
	"sequins/version"
)

// Catalog is the part of a node that a Reader uses.
type Catalog interface {
	// Set returns the versions of a db, nil if there is no such db. It is called for every request, so it
	// must not allocate or lock. It must not keep db.
	Set(db []byte) *version.Set
	// MayExist reports whether a db that is unknown to Set may still exist: the source has not been read yet,
	// or another node serves the db.
	MayExist(db []byte) bool
}

// Proxy fetches keys from other nodes. A single node has none.
type Proxy interface {
	// Fetch asks the peers of q and returns the first usable answer, whose body the caller must close. It
	// limits its own duration and does not keep q. The error wraps context.DeadlineExceeded if the peers took
	// too long and context.Canceled if ctx ended; any other error means that no peer could answer.
	Fetch(ctx context.Context, q *proxy.Query) (*proxy.Answer, error)
}

// Options are the settings of a Reader. The zero value reads local blocks.
type Options struct {
	// ContentType returns the media type of a db's values. The default, also for "" and for strings with
	// control characters, is application/octet-stream.
	ContentType func(db string) string
	// Proxy fetches keys of partitions on other nodes; nil on a single node.
	Proxy Proxy
	// Zones are the zones of the nodes that Proxy asks.
	Zones proxy.Zones
	// PeerSecret is the credential that this node sends to other nodes of its cluster; "" sends none.
	PeerSecret string
	// MaxBatchKeys limits the keys of a batch; 0 means 10,000. The front ends enforce it.
	MaxBatchKeys int
	// MaxBatchBytes limits the keys of a batch and its values, each, in bytes; 0 means 64 MiB. All batches together
	// may hold four times as much.
	MaxBatchBytes int64
	// HeldGrace is the time for the first bytes of an answer that holds memory of batches, see Read.WriteBy; 0 means 10s.
	HeldGrace time.Duration
	// MaxScans limits the ordered reads of clients at the same time; 0 means 16. Each may hold about 32 MiB, and counts
	// several times if its version has so many partitions that it needs more. Four times as many are answered for other nodes, which
	// take milliseconds each.
	MaxScans int
	// Name is the name of this node in explanations; "" means localhost.
	Name string
	// Metrics counts requests; it may be nil.
	Metrics *metrics.Server
	// Tracer creates spans of requests; it may be nil.
	Tracer *tracing.Tracer
	// Logger logs errors, at most one per second; nil means slog.Default().
	Logger *slog.Logger
}

// Reader is the state that the Reads of a node share. It is safe for concurrent use.
type Reader struct {
	catalog Catalog
	opts    Options
	log     *limitlog.Logger
	secret  []byte // Options.PeerSecret

	contentType atomic.Pointer[func(db string) string]
	databases   atomic.Pointer[map[string]*database]
	mu          sync.Mutex // guards changes to databases
	stripes     atomic.Uint32
	reserved    atomic.Int64 // bytes that batches hold, see Read.Reserve
	scans       atomic.Int64 // of clients, see reserveScan
	pages       atomic.Int64 // of other nodes
	holding     atomic.Bool  // see Hold

	// ending is canceled by Stop; requests to other nodes end with it.
	ending context.Context
	stop   context.CancelFunc
}

// New returns a Reader for a catalog. The caller must call Stop.
func New(c Catalog, o Options) *Reader {
	if o.Metrics == nil {
		o.Metrics = metrics.New().Server
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.MaxBatchKeys = cmp.Or(o.MaxBatchKeys, 10_000)
	o.MaxBatchBytes = cmp.Or(o.MaxBatchBytes, 64<<20)
	o.HeldGrace = cmp.Or(o.HeldGrace, 10*time.Second)
	o.MaxScans = cmp.Or(o.MaxScans, 16)
	o.Name = cmp.Or(o.Name, "localhost")
	rd := &Reader{catalog: c, opts: o, log: limitlog.New(o.Logger), secret: []byte(o.PeerSecret)}
	rd.ending, rd.stop = context.WithCancel(context.Background())
	rd.databases.Store(&map[string]*database{})
	rd.SetContentType(o.ContentType)
	return rd
}

// Stop cancels the pending requests to other nodes.
func (rd *Reader) Stop() { rd.stop() }

// Hold makes the front ends refuse reads until Admit is called, so that a db that is not open yet does not appear
// missing.
func (rd *Reader) Hold() { rd.holding.Store(true) }

// Admit ends Hold.
func (rd *Reader) Admit() { rd.holding.Store(false) }

// Holding reports whether reads are refused.
func (rd *Reader) Holding() bool { return rd.holding.Load() }

// BatchLimits returns Options.MaxBatchKeys and Options.MaxBatchBytes.
func (rd *Reader) BatchLimits() (keys int, bytes int64) {
	return rd.opts.MaxBatchKeys, rd.opts.MaxBatchBytes
}

// Holds reports whether the partitions of all keys are on this node in the current version of a db.
func (rd *Reader) Holds(db []byte, keys [][]byte) bool {
	set := rd.catalog.Set(db)
	if set == nil {
		return false
	}
	h := set.Acquire()
	if h == nil {
		return false
	}
	defer h.Release()
	for _, key := range keys {
		if !h.Has(h.Partition(key)) {
			return false
		}
	}
	return true
}

// SetContentType replaces Options.ContentType for later reads.
func (rd *Reader) SetContentType(f func(db string) string) {
	if f == nil {
		f = func(string) string { return "" }
	}
	rd.contentType.Store(&f)
}

// NewRead returns a Read, which serves one request at a time.
func (rd *Reader) NewRead() Read {
	return Read{reader: rd, stripe: rd.stripes.Add(1)}
}
