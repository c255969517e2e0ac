package node

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"sequins/cluster/transfer"
	"sequins/load"
	"sequins/load/loadproc"
	"sequins/node/events"
	"sequins/node/turns"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/observe/tracing"
	"sequins/reads"
	"sequins/server"
	"sequins/server/resp"
	"sequins/source"
	"sequins/store"
	"sequins/version"
	"sequins/version/gate"
)

// DefaultParallelLoads is the default of Options.MaxParallelLoads.
const DefaultParallelLoads = 10

// DefaultDBRemoveTimeout is the default of Reloadable.DBRemoveTimeout: how long a db is kept after it
// has disappeared from the source.
const DefaultDBRemoveTimeout = time.Hour

// Options are the settings of a Node. Source, Store, Loads and Listener are required.
type Options struct {
	Source source.Source
	// Loads starts the processes that plan and load versions from the same source. The node sets its
	// Lock, Metrics, bandwidth and reserve, and Free if it is nil.
	Loads *loadproc.Launcher
	// SourceName is the URL or path of the source, for display.
	SourceName string
	// Store is the local store. Run closes it.
	Store *store.Store
	// Cluster is the state of the cluster; nil means version.Solo.
	Cluster version.Cluster
	// Membership adds the state of the cluster as a whole to a status; it may be nil. Joining returns what Cluster.Join waits for, and
	// whether it has not ended yet; it may be nil, too.
	Membership func(*status.Status)
	// Keys adds the state of the certificate and the tokens to a status; it may be nil.
	Keys    func(*status.Status)
	Joining func() (w status.Wait, joining bool)

	// Listener is the listener for requests; Run closes it.
	Listener net.Listener
	// TLS encrypts the connections of Listener; nil: they are not. RedisTLS is that of RedisListener.
	TLS, RedisTLS *tls.Config
	// DebugListener is the listener for Debug; nil disables it. Run closes it.
	DebugListener net.Listener
	// Debug are the settings of the debug listener. The node sets its Metrics, Refresh and Probed.
	Debug server.DebugOptions
	// RedisListener is the listener for clients of Redis; nil disables it. Run closes it.
	RedisListener net.Listener
	// Redis are the settings of that listener. The node sets all but Idle.
	Redis resp.Options
	// Server are the settings of the server. The node sets Metrics and Logger.
	Server server.Options
	// Reads are the settings of reads. The node sets all but Proxy and the limits.
	Reads reads.Options

	// MaxParallelLoads is how many databases load in parallel; 0 means DefaultParallelLoads.
	MaxParallelLoads int
	// Replication is the target number of replicas of each partition, MinReplication the number that a
	// switch requires. 0 means 1.
	Replication, MinReplication int
	// ShutdownDelay is how long requests are served after the end of Run's context, while /readyz
	// fails; then the listener is closed.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long requests in flight may take after that; 0 means 30s.
	ShutdownTimeout time.Duration

	// ScrubPeriod is the interval of reading every block, to find damage before a request does; 0
	// disables it.
	ScrubPeriod time.Duration

	// Name is the name of this node in the status JSON: host:port, or "" for localhost. Build is the
	// version of the program.
	Name, Build string
	// ShardID returns the shard id of this node, which may be known only after Cluster.Join; nil means
	// "".
	ShardID func() string

	// Events is told what happens to versions; nil means that it is only logged. The caller closes it after Run.
	Events *events.Recorder
	// Metrics counts events; it may be nil.
	Metrics *metrics.Metrics
	// Tracer creates spans of requests and loads; it may be nil.
	Tracer *tracing.Tracer
	// Logger logs important events; nil means slog.Default().
	Logger *slog.Logger

	Reloadable
}

// Reloadable are the settings that Node.Apply changes in a running node. With the zero value the source
// is listed at the start and on request.
type Reloadable struct {
	// RefreshPeriod is the interval of listing the source; with 0 only Refresh does.
	RefreshPeriod time.Duration
	// Settle is the time for which a version without a marker must be unchanged between two listings;
	// with 0 one listing is enough.
	Settle time.Duration
	// AutoSuccess reports whether a database's versions need a _SUCCESS file if one of them has it,
	// unless Load requires it anyway. nil means never.
	AutoSuccess func(db string) bool
	// VersionRemoveTimeout is how long a replaced version is kept after its last request, if there are
	// other nodes.
	VersionRemoveTimeout time.Duration
	// KeepVersions returns how many versions of a database stay on the disk and open, with the active one;
	// nil means 1.
	KeepVersions func(db string) int
	// Gate returns the rules that versions of a database must keep; nil means none.
	Gate func(db string) gate.Rules
	// DBRemoveTimeout is how long a database is served after it has disappeared from the source; 0
	// means DefaultDBRemoveTimeout, a negative value the minimum.
	DBRemoveTimeout time.Duration
	// Bandwidth limits reading from the source, for all loads together, in bytes per second; 0 is
	// unlimited.
	Bandwidth float64
	// FromPeers copies blocks from other nodes that have them, within PeerLimits, which also hold for the blocks that are given.
	FromPeers  bool
	PeerLimits transfer.Limits
	// Load returns the load options of a database; nil means the zero load.Options. LoadMemoryLimit
	// limits the private memory of a load process, in bytes; 0 is unlimited.
	Load            func(db string) load.Options
	LoadMemoryLimit int64
	// MinFreeDisk is how many bytes of the disk loads leave free. If it is negative, loads begin without a look at the
	// disk.
	MinFreeDisk int64
	// Turn returns when loads of a database may begin, and which of several that wait comes first; nil means
	// the zero turns.Terms.
	Turn func(db string) turns.Terms
	// ContentType returns the media type of a database's values, see reads.Options. RequestLogSample is
	// the sample of the request log, see server.Options.
	ContentType      func(db string) string
	RequestLogSample int
	// Delivery is how answers are delivered, see server.Options.
	Delivery server.Delivery
	// TraceSample is the fraction of requests to trace, from 0 to 1, among those without a parent.
	TraceSample float64
	// ShowKeys shows the keys that are read most in the status, see reads.Options.
	ShowKeys bool
}

// dbRemoveTimeout returns DBRemoveTimeout or its default.
func (r *Reloadable) dbRemoveTimeout() time.Duration {
	if r.DBRemoveTimeout == 0 {
		return DefaultDBRemoveTimeout
	}
	return max(0, r.DBRemoveTimeout)
}

// withDefaults checks o and replaces zero values by their defaults.
func (o Options) withDefaults() (Options, error) {
	if o.Source == nil || o.Store == nil || o.Loads == nil || o.Listener == nil {
		return o, errors.New("a node needs a source, a store, a launcher of loads and a listener")
	}
	o.Source = source.NewBounded(o.Source)
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
	if o.Loads.Free == nil {
		o.Loads.Free = o.Metrics.Process.FreeDisk
	}
	o.Replication, o.MinReplication = max(1, o.Replication), max(1, o.MinReplication)
	o.Server.Metrics, o.Server.Logger, o.Debug.Metrics = o.Metrics.Server, o.Logger, o.Metrics
	o.Server.Name, o.Server.Build = o.Name, o.Build
	o.Reads.ContentType, o.Reads.PeerSecret, o.Reads.Name = o.ContentType, o.Server.PeerSecret, o.Name
	o.Reads.Metrics, o.Reads.Tracer, o.Reads.Logger = o.Metrics.Server, o.Tracer, o.Logger
	return o, nil
}
