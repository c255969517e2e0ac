package node

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"sequins/load"
	"sequins/loadproc"
	"sequins/metrics"
	"sequins/reads"
	"sequins/server"
	"sequins/source"
	"sequins/store"
	"sequins/tracing"
	"sequins/version"
)

// DefaultParallelLoads is how many databases load at a time if nothing else is
// said.
const DefaultParallelLoads = 10

// Options are what a Node is made of. Source, Store, Loads and Listener are required.
type Options struct {
	Source source.Source
	// Loads starts the processes that plan and load versions from the same source. Its Lock, Metrics and
	// bandwidth are filled in.
	Loads *loadproc.Launcher
	// SourceName is what a person would type to see the source.
	SourceName string
	// Store is where blocks are kept. Run closes it.
	Store *store.Store
	// Cluster is what is known of other nodes; nil stands for version.Solo.
	Cluster version.Cluster
	// Membership adds what is known of the cluster as a whole to a status; nil
	// adds nothing.
	Membership func(*server.Status)

	// Listener is where requests are answered; Run closes it.
	Listener net.Listener
	// DebugListener is where Debug is shown; nil is nowhere. Run closes it.
	DebugListener net.Listener
	// Debug says what is shown there. Its Metrics are filled in.
	Debug server.DebugOptions
	// Server are the settings of the server. Metrics and Logger are filled in.
	Server server.Options
	// Reads are the settings of what answers its requests. Only Proxy is of use; the rest is filled in.
	Reads reads.Options

	// MaxParallelLoads is how many databases load at a time; 0 stands for
	// DefaultParallelLoads.
	MaxParallelLoads int
	// Replication is how many replicas the cluster should have of a partition,
	// MinReplication how many a switch waits for. 0 stands for 1.
	Replication, MinReplication int
	// ShutdownDelay is how long requests are served after the end of Run's
	// context, while /readyz fails; then the listener is closed.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long requests in flight may take after that; 0
	// stands for 30s.
	ShutdownTimeout time.Duration

	// ScrubPeriod is the time between two readings of every block, which find
	// damage before a request does; 0 is never. ScrubRate bounds them, in bytes
	// a second; 0 does not.
	ScrubPeriod time.Duration
	ScrubRate   float64

	// Name is what this node is called in the status JSON: host:port, or ""
	// for localhost. Build is the version of the program.
	Name, Build string
	// ShardID returns what decides which partitions are this node's own, which
	// may be known only after Cluster.Join; nil stands for "".
	ShardID func() string

	// Metrics counts; nil: for nobody.
	Metrics *metrics.Metrics
	// Tracer makes spans of requests and loads; nil: there are none.
	Tracer *tracing.Tracer
	// Logger gets one line for each event that matters; nil: slog.Default().
	Logger *slog.Logger

	Reloadable
}

// Reloadable are the settings that Node.Apply changes while a node runs. The
// zero value lists the source at the start and then when asked to.
type Reloadable struct {
	// RefreshPeriod is the time between two looks at the source; 0 leaves it
	// to Refresh.
	RefreshPeriod time.Duration
	// Settle is the time between the two looks that a version without a marker
	// must pass unchanged before it is taken; 0 takes it at the first look.
	Settle time.Duration
	// AutoSuccess reports whether a database's versions need a _SUCCESS file if
	// one of them has it, where Load does not require it anyway. nil: none do.
	AutoSuccess func(db string) bool
	// VersionRemoveTimeout is how long a version that has been replaced stays
	// after the last request for it, where there are other nodes.
	VersionRemoveTimeout time.Duration
	// DBRemoveTimeout is how long a database is served on that the source does
	// not list any more; 0 stands for DefaultDBRemoveTimeout, less than 0 for as
	// short as possible.
	DBRemoveTimeout time.Duration
	// Bandwidth bounds reading from the source, for all loads together, in
	// bytes a second; 0 does not.
	Bandwidth float64
	// Load says how versions of a database are loaded, and LoadMemoryLimit how many bytes of private memory
	// the process of a load can have; 0 does not bound it. nil stands for the zero load.Options.
	Load            func(db string) load.Options
	LoadMemoryLimit int64
	// ContentType is the media type of a database's values, see reads.Options;
	// RequestLogSample how many requests the request log has one of, see server.Options.
	ContentType      func(db string) string
	RequestLogSample int
	// TraceSample is which fraction of the requests that begin here is traced,
	// from 0 to 1.
	TraceSample float64
}

// dbRemoveTimeout returns DBRemoveTimeout or its default.
func (r *Reloadable) dbRemoveTimeout() time.Duration {
	if r.DBRemoveTimeout == 0 {
		return DefaultDBRemoveTimeout
	}
	return max(0, r.DBRemoveTimeout)
}

// withDefaults checks o and fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	if o.Source == nil || o.Store == nil || o.Loads == nil || o.Listener == nil {
		return o, errors.New("a node needs a source, a store, a launcher of loads and a listener")
	}
	o.Source = newBoundedSource(o.Source)
	if o.Cluster == nil {
		o.Cluster = version.Solo{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Name == "" {
		o.Name = "localhost"
	} else {
		o.Logger = o.Logger.With("node", o.Name)
	}
	if o.ShardID == nil {
		o.ShardID = func() string { return "" }
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New()
	}
	if o.MaxParallelLoads <= 0 {
		o.MaxParallelLoads = DefaultParallelLoads
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = 30 * time.Second
	}
	o.Loads.Lock, o.Loads.Metrics = o.Store.LockFile(), o.Metrics.Load
	o.Replication, o.MinReplication = max(1, o.Replication), max(1, o.MinReplication)
	o.Server.Metrics, o.Server.Logger, o.Debug.Metrics = o.Metrics.Server, o.Logger, o.Metrics
	o.Reads = reads.Options{
		ContentType: o.ContentType, Proxy: o.Reads.Proxy, PeerSecret: o.Server.PeerSecret, Name: o.Name,
		Metrics: o.Metrics.Server, Tracer: o.Tracer, Logger: o.Logger,
	}
	return o, nil
}
