package daemon

import (
	"maps"
	"regexp"
	"slices"
	"syscall"

	"sequins/blocks"
	"sequins/config"
	"sequins/load"
	"sequins/load/loadproc"
	"sequins/node"
	"sequins/node/events"
	"sequins/node/turns"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/server"
	"sequins/version/gate"
)

// options returns the options of the node that need no resources.
func (d *Daemon) options() node.Options {
	c := d.config.Load()
	forLoads := config.Config{Source: c.Source, S3: c.S3, Azure: c.Azure, HDFS: c.HDFS} // what OpenSource needs
	o := node.Options{
		SourceName: c.Source, Loads: &loadproc.Launcher{Source: forLoads}, MaxParallelLoads: c.MaxParallelLoads, ShutdownDelay: c.ShutdownDelay, ScrubPeriod: c.ScrubPeriod,
		Build: d.build, Metrics: metrics.New(), Logger: d.Log, Reloadable: reloadable(*c), Describe: []func(*status.Status){d.describeFiles},
	}
	o.Server.MaxConns, o.Server.Settings = maxConnections(c.MaxConnections), d.settings
	o.Reads.MaxBatchBytes, o.Reads.MaxScans = int64(c.Batch.MaxBytes), config.MaxScans()
	o.Redis.Idle = c.Redis.IdleTimeout
	o.Debug.Pprof, o.Debug.Reload = c.Debug.Pprof, d.reload
	return o
}

// target returns where events are sent, nil for nowhere.
func target(e *config.Events) *events.Target {
	if e.Webhook == "" {
		return nil
	}
	return &events.Target{URL: e.Webhook, Secret: e.Secret}
}

// maxConnections returns the limit of open connections: the configured one, or half of the file
// descriptors minus those of connections for probes. Blocks use a quarter of the descriptors, and
// loads, other nodes and the source the rest.
func maxConnections(configured int) int {
	var limit syscall.Rlimit
	if configured > 0 || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return configured
	}
	const (
		most   = 256 << 10
		probes = 64 // connections that the server accepts beyond the limit, for probes
	)
	return int(min(max(limit.Cur/2-min(limit.Cur/2, probes), limit.Cur/4), most))
}

// leastEncoded is the least number of bytes of an answer that is compressed: below it, compression takes more time than it saves.
const leastEncoded = 1 << 10

// reloadable returns the part of the configuration that a running node can apply.
func reloadable(c config.Config) node.Reloadable {
	of := func(name string) node.DB {
		db := c.ForDB(name)
		windows, _ := turns.ParseWindows(db.LoadWindow) // it is valid
		return node.DB{Load: LoadOptions(&c, name), AutoSuccess: db.RequireSuccessFile == config.RequireAuto, KeepVersions: db.KeepVersions,
			Gate: rules(db.Gate), Turn: turns.Terms{Priority: db.LoadPriority, Windows: windows}, ContentType: db.ContentType}
	}
	others, dbs := of(""), make(map[string]node.DB) // made once: they are asked for by requests, and zones are read from the disk
	r := node.Reloadable{
		DB: func(name string) node.DB {
			if db, ok := dbs[name]; ok {
				return db
			}
			return others
		},
		RefreshPeriod:        c.RefreshPeriod,
		Settle:               c.Settle,
		VersionRemoveTimeout: c.VersionRemoveTimeout,
		MinFreeDisk:          int64(c.Load.MinFreeDisk),
		FromPeers:            c.Load.FromPeers,
		PeerBandwidth:        float64(c.Load.PeerBandwidth),
		DBRemoveTimeout:      c.DBRemoveTimeout,
		Bandwidth:            float64(c.MaxDownloadBandwidth),
		LoadMemoryLimit:      int64(c.LoadMemoryLimit()),
		Delivery:             server.Delivery{Origins: c.HTTP.AllowedOrigins, Codings: c.HTTP.Compression, MinEncoded: leastEncoded, Caching: c.HTTP.CacheControl, CachingOf: make(map[string]string)},
		RequestLogSample:     c.Debug.RequestLogSample,
		TraceSample:          c.Tracing.Sample,
	}
	for name, db := range c.DB {
		dbs[name], r.Delivery.CachingOf[name] = of(name), db.CacheControl
	}
	if !c.Load.CheckDisk {
		r.MinFreeDisk = -1 // the disk is not looked at
	}
	return r
}

// rules returns the rules of a gate. The patterns of the configuration are valid.
func rules(g config.Gate) gate.Rules {
	r := gate.Rules{MinRecords: int64(g.MinRecords), MaxShrink: g.MaxShrink, MaxGrowth: g.MaxGrowth, MaxMissing: g.MaxMissing, MaxValueSize: int64(g.MaxValueSize)}
	for _, key := range slices.Sorted(maps.Keys(g.RequiredKeys)) {
		required := gate.Required{Key: key}
		if p := g.RequiredKeys[key]; p != "" {
			required.Value = regexp.MustCompile(p)
		}
		r.Required = append(r.Required, required)
	}
	return r
}

// LoadOptions returns the load options of a database.
func LoadOptions(c *config.Config, db string) load.Options {
	d := c.ForDB(db)
	compression, _ := blocks.ParseCompression(c.Storage.Compression) // it is valid: a test holds the names together
	return load.Options{
		Memory:          int64(c.Load.Memory),
		Compression:     compression,
		BlockSize:       int(c.Storage.BlockSize),
		Throttle:        c.ThrottleLoads,
		RequireSuccess:  d.RequireSuccessFile == config.RequireTrue,
		AllowEmpty:      d.AllowEmpty,
		Partitioner:     d.Partitioner,
		Partitions:      d.Partitions,
		MaxRecordErrors: int64(d.Gate.MaxRecordErrors),
		Fields:          load.Fields{Key: d.Key, Value: d.Value},

		PartitionColumns: d.PartitionColumns,
	}
}
