package node

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"sequins/internal/wire"
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
	// Joining returns what Cluster.Join waits for, nil if it is not running. It may be nil.
	Joining func() *status.Wait
	// Describe add to a status what the node does not know: the cluster as a whole, the certificate, the tokens and the last reload.
	Describe []func(*status.Status)

	// Listener is the listener for requests; Run closes it.
	Listener net.Listener
	// TLS encrypts the connections of Listener and RedisListener; nil: they are not.
	TLS *tls.Config
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

	// MaxParallelLoads is how many databases load in parallel; 0 means 10.
	MaxParallelLoads int
	// Replication is the target number of replicas of each partition, MinReplication the number that a switch requires. 0 means 1.
	Replication, MinReplication int
	// ShutdownDelay is how long requests are served after the end of Run's context, while /readyz fails; then the listener is closed.
	ShutdownDelay time.Duration

	// ScrubPeriod is the interval of reading every block, to find damage before a request does; 0 disables it.
	ScrubPeriod time.Duration

	// Name is the name of this node in the status JSON: host:port, or "" for localhost. Build is the version of the program.
	Name, Build string
	// ShardID returns the shard id of this node, which may be known only after Cluster.Join; nil means "".
	ShardID func() string

	// Events is told what happens to versions; nil means that it is only logged. The caller closes it after Run.
	Events *events.Recorder
	// Metrics counts events; it may be nil.
	Metrics *metrics.Metrics
	// Tracer creates spans of requests; it may be nil.
	Tracer *tracing.Tracer
	// Logger logs important events; nil means slog.Default().
	Logger *slog.Logger

	Reloadable
}

// Reloadable are the settings that Node.Apply changes in a running node. With the zero value the source is listed at the start and on request.
type Reloadable struct {
	// RefreshPeriod is the interval of listing the source; with 0 only Refresh does.
	RefreshPeriod time.Duration
	// Settle is the time for which a version without a marker must be unchanged between two listings; with 0 one listing is enough.
	Settle time.Duration
	// DB returns the settings of a database; nil means the zero DB.
	DB func(name string) DB
	// VersionRemoveTimeout is how long a replaced version is kept after its last request, if there are other nodes.
	VersionRemoveTimeout time.Duration
	// DBRemoveTimeout is how long a database is served after it has disappeared from the source.
	DBRemoveTimeout time.Duration
	// Bandwidth limits reading from the source, for all loads together, in bytes per second; 0 is unlimited.
	Bandwidth float64
	// FromPeers copies blocks from other nodes that have them, at most PeerBandwidth bytes per second, which also holds for the blocks that are given; 0 is
	// unlimited.
	FromPeers     bool
	PeerBandwidth float64
	// LoadMemoryLimit limits the private memory of a load process, in bytes; 0 is unlimited.
	LoadMemoryLimit int64
	// MinFreeDisk is how many bytes of the disk loads leave free. If it is negative, loads begin without a look at the disk.
	MinFreeDisk int64
	// RequestLogSample is the sample of the request log, see server.Server.SetRequestLogSample.
	RequestLogSample int
	// Delivery is how answers are delivered.
	Delivery server.Delivery
	// TraceSample is the fraction of requests to trace, from 0 to 1, among those without a parent.
	TraceSample float64
}

// DB are the settings of one database.
type DB struct {
	Load load.Options
	// AutoSuccess reports whether its versions need a _SUCCESS file if one of them has it, unless Load requires it anyway.
	AutoSuccess bool
	// KeepVersions is how many versions stay on the disk and open, with the active one.
	KeepVersions int
	// Gate are the rules that its versions must keep.
	Gate gate.Rules
	// Turn is when its loads may begin, and which of several that wait comes first.
	Turn turns.Terms
	// ContentType is the media type of its values, see reads.Options.
	ContentType string
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
	o.MaxParallelLoads = cmp.Or(o.MaxParallelLoads, 10)
	o.Loads.Metrics = o.Metrics.Load
	if o.Loads.Free == nil {
		o.Loads.Free = o.Metrics.Process.FreeDisk
	}
	o.Replication, o.MinReplication = max(1, o.Replication), max(1, o.MinReplication)
	o.Server.Metrics, o.Server.Logger, o.Debug.Metrics = o.Metrics.Server, o.Logger, o.Metrics
	if o.Server.Nodes == nil {
		o.Server.Nodes = wire.NewClient(nil, o.Server.PeerSecret)
	}
	o.Reads.PeerSecret, o.Reads.Name = o.Server.PeerSecret, o.Name
	o.Reads.Metrics, o.Reads.Tracer, o.Reads.Logger = o.Metrics.Server, o.Tracer, o.Logger
	return o, nil
}
