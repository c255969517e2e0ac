package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sequins/blocks"
	"sequins/cluster/transfer"
	"sequins/config"
	"sequins/load"
	"sequins/node"
	"sequins/node/events"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/server"
	"sequins/source"
	"sequins/store"
	"sequins/version/gate"
)

// serveFlags are the flags of the root command. An empty one was not given.
type serveFlags struct {
	config, source, bind, localStore, debugBind string
}

func (f *serveFlags) register(cmd *cobra.Command) {
	f.registerSource(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.bind, "bind", "b", "", "`address` (host:port) to serve on")
	flags.StringVarP(&f.localStore, "local-store", "l", "", "`directory` for local copies of the data")
	flags.StringVar(&f.debugBind, "debug-bind", "", "`address` (host:port) of the listener for metrics and profiles")
}

// registerSource registers the flags that select the source.
func (f *serveFlags) registerSource(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	registerConfig(flags, &f.config)
	flags.StringVarP(&f.source, "source", "r", "", "source of the data: a `directory` or URL")
}

// path returns the configuration file to read, or "" if there is none and the flags or the environment name a source.
func (f *serveFlags) path() (string, error) {
	if f.config != "" {
		return f.config, nil
	}
	path := config.Find(config.SearchPath)
	if path == "" && f.source == "" && os.Getenv(config.Variable("source")) == "" {
		return "", errNoConfig()
	}
	return path, nil
}

// overrides returns the keys that flags set. Relative paths are relative to the current directory.
func (f *serveFlags) overrides() (given []config.Flag, err error) {
	for _, flag := range []config.Flag{
		{Name: "--source", Key: "source", Value: f.source},
		{Name: "--bind", Key: "bind", Value: f.bind},
		{Name: "--local-store", Key: "local_store", Value: f.localStore},
		{Name: "--debug-bind", Key: "debug.bind", Value: f.debugBind},
	} {
		if flag.Key == "source" || flag.Key == "local_store" {
			if flag.Value, err = absolute(flag.Value); err != nil {
				return nil, err
			}
		}
		if flag.Value != "" {
			given = append(given, flag)
		}
	}
	return given, nil
}

// absolute makes a path absolute. URLs and empty strings are unchanged.
func absolute(path string) (string, error) {
	if path == "" || strings.Contains(path, "://") {
		return path, nil
	}
	return filepath.Abs(path)
}

// given returns the configuration file and the keys that flags set.
func (f *serveFlags) given() (path string, overrides []config.Flag, err error) {
	if path, err = f.path(); err != nil {
		return "", nil, err
	}
	overrides, err = f.overrides()
	return path, overrides, err
}

// load reads the configuration.
func (f *serveFlags) load() (config.Config, []*config.Warning, error) {
	path, overrides, err := f.given()
	if err != nil {
		return config.Config{}, nil, err
	}
	return config.Load(path, overrides...)
}

// serve runs a node until a signal.
func serve(ctx context.Context, stderr io.Writer, flags serveFlags) error {
	path, overrides, err := flags.given()
	if err != nil {
		return err
	}
	c, warnings, err := config.Load(path, overrides...)
	if err != nil {
		return err
	}
	if err := c.ReadSecrets(); err != nil {
		return err
	}
	log, level := newLogger(stderr, c.Log)
	for _, w := range warnings {
		log.Warn("configuration: " + w.Error())
	}
	log.Info("sequins starts", "version", buildName(), "source", c.Source, "bind", c.Bind, "store", c.LocalStore)
	s, err := open(ctx, c, log)
	if err != nil {
		return err
	}
	base, err := addressURL(s.address)
	if err != nil {
		return errors.Join(err, s.given.Close())
	}
	systemd := newNotifier(log)
	if s.keys != nil {
		base, systemd.secure = secureURL(base), s.keys.self()
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	r := &reloader{
		path: path, searched: flags.config == "", overrides: overrides, running: c, serving: s, systemd: systemd,
		level: level, log: log, stopping: stopping.Done(),
	}
	s.reload = r.reload
	err = untilSignal(ctx, log, c.ShutdownDelay+endPatience, func() { r.request() }, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, stop)()
		return systemd.follow(ctx, base, s.run)
	})
	stop()
	r.wait()
	return errors.Join(err, s.given.Close())
}

// serving is a node and the resources that the node does not close itself.
type serving struct {
	node    *node.Node
	address string // of the listener
	given   closers
	keys    *keyring   // nil without TLS
	tokens  *tokenFile // nil without tokens

	reload func() (restart []string, err error) // set before run
	alike  alike

	requestLog *requestLog // nil if disabled
	metrics    *metrics.Metrics
	events     *events.Recorder
}

// run runs the node and reloads the tokens meanwhile.
func (s *serving) run(ctx context.Context) error {
	if s.tokens == nil {
		return s.node.Run(ctx)
	}
	running, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.tokens.follow(running)
	}()
	defer func() {
		end()
		select {
		case <-ended:
		case <-time.After(time.Second): // the file system of the tokens does not answer; the process ends
		}
	}()
	return s.node.Run(ctx)
}

// open acquires the resources of a node. Checks that are likely to fail and cheap come first.
func open(ctx context.Context, c config.Config, log *slog.Logger) (_ *serving, err error) {
	o := nodeOptions(&c, log)
	s := &serving{metrics: o.Metrics}
	o.Debug.Reload = func() ([]string, error) { return s.reload() }
	s.alike.set(c)
	o.Server.Settings = func() status.Settings { return s.alike.settings(s.tokens) }
	var opened closers
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close(), s.given.Close())
		}
	}()
	if err := s.sendMetrics(&c); err != nil {
		return nil, err
	}
	if o.Source, err = openSource(ctx, &c); err != nil {
		return nil, err
	}
	o.SourceID = source.Location(o.Source)
	if src, ok := o.Source.(io.Closer); ok {
		s.given = append(s.given, src)
	}
	if err := s.listen(&c, &o, &opened); err != nil {
		return nil, err
	}
	if o.Store, err = store.Open(c.LocalStore); err != nil {
		return nil, fmt.Errorf("local_store: %w", err)
	}
	opened = append(opened, o.Store)
	o.Metrics.Process.SetStore(c.LocalStore)
	if err := s.guard(&c, &o); err != nil {
		return nil, err
	}
	if err := joinCluster(&c, s.keys, &o, &s.given); err != nil {
		return nil, err
	}
	s.openEvents(&c, &o)
	if err := openTracer(ctx, &c, &o, &s.given); err != nil {
		return nil, err
	}
	s.node, err = node.New(o)
	return s, err
}

// nodeOptions returns the options that need no resources.
func nodeOptions(c *config.Config, log *slog.Logger) node.Options {
	o := node.Options{
		SourceName:       c.Source,
		Loads:            loadLauncher(c),
		MaxParallelLoads: c.MaxParallelLoads,
		ShutdownDelay:    c.ShutdownDelay,
		ScrubPeriod:      c.ScrubPeriod,
		Build:            buildName(),
		Metrics:          metrics.New(),
		Logger:           log,
		Reloadable:       reloadable(*c),
	}
	o.Metrics.Process.SetBuild(o.Build)
	o.Server.MaxConns = maxConnections(c.MaxConnections)
	o.Reads.MaxBatchBytes = int64(c.Batch.MaxBytes)
	o.Reads.CacheBytes = int64(c.Cache.Bytes)
	o.Reads.MaxScans = config.MaxScans()
	if o.Redis.Idle = c.Redis.IdleTimeout; c.Redis.IdleTimeout == 0 {
		o.Redis.Idle = -1 // no limit
	}
	o.Debug.Pprof = c.Debug.Pprof
	return o
}

// sendMetrics sends the metrics to Datadog's agent, if configured.
func (s *serving) sendMetrics(c *config.Config) error {
	if c.Datadog.URL == "" {
		return nil
	}
	agent, err := s.metrics.SendTo(c.Datadog.URL, c.Sharding.ClusterName)
	if err != nil {
		return fmt.Errorf("datadog.url: %w", err)
	}
	s.given = append(s.given, agent)
	return nil
}

// listen binds the addresses and opens the request log, if configured.
func (s *serving) listen(c *config.Config, o *node.Options, opened *closers) (err error) {
	if o.Listener, err = listen("bind", c.Bind, opened); err != nil {
		return err
	}
	s.address = o.Listener.Addr().String()
	if c.Debug.Bind != "" {
		if o.DebugListener, err = listen("debug.bind", c.Debug.Bind, opened); err != nil {
			return err
		}
	}
	if c.Redis.Bind != "" {
		if o.RedisListener, err = listen("redis.bind", c.Redis.Bind, opened); err != nil {
			return err
		}
	}
	if !c.Debug.RequestLogEnable {
		return nil
	}
	if s.requestLog, err = openRequestLog(c.Debug.RequestLogFile); err != nil {
		return err
	}
	s.given = append(s.given, s.requestLog)
	o.Server.RequestLog = s.requestLog
	return nil
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

// guard sets up TLS and tokens, if configured.
func (s *serving) guard(c *config.Config, o *node.Options) (err error) {
	if s.keys, err = openKeyring(c.TLS, o.Logger); err != nil {
		return err
	}
	if s.keys != nil {
		o.TLS, o.RedisTLS = s.keys.server(), s.keys.redisServer()
		o.Metrics.Process.SetCertificate(s.keys.expiry)
	}
	if s.tokens, err = openTokens(c.Auth, o.Logger); err != nil {
		return err
	}
	if s.tokens != nil {
		o.Server.Tokens = s.tokens.tokens
	}
	o.Keys = s.describeKeys
	return nil
}

// describeKeys adds the certificate and the tokens to a status.
func (s *serving) describeKeys(st *status.Status) {
	if s.keys != nil {
		s.keys.describe(st)
	}
	if s.tokens != nil {
		s.tokens.describe(st)
	}
}

// closers are resources to close if opening a later one fails.
type closers []io.Closer

func (cs closers) Close() error {
	var errs []error
	for _, c := range cs {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// listen binds an address. The error names the key and the reason.
func listen(key, address string, opened *closers) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		var call *os.SyscallError
		if errors.As(err, &op) {
			err = op.Err
		}
		if errors.As(err, &call) {
			err = call.Err
		}
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", key, address, err)
	}
	*opened = append(*opened, ln)
	return ln, nil
}

// reloadable returns the part of the configuration that a running node can apply.
func reloadable(c config.Config) node.Reloadable {
	return node.Reloadable{
		RefreshPeriod:        c.RefreshPeriod,
		Settle:               c.Settle,
		AutoSuccess:          func(db string) bool { return c.ForDB(db).RequireSuccessFile == config.RequireAuto },
		VersionRemoveTimeout: c.VersionRemoveTimeout,
		KeepVersions:         func(db string) int { return c.ForDB(db).KeepVersions },
		Gate:                 func(db string) gate.Rules { return rules(c.ForDB(db).Gate) },
		Turn:                 terms(&c),
		MinFreeDisk:          minFreeDisk(&c),
		FromPeers:            c.Load.FromPeers,
		PeerLimits:           transfer.Limits{Streams: config.PeerStreams, Bandwidth: float64(c.Load.PeerBandwidth)},
		DBRemoveTimeout:      c.DBRemoveTimeout,
		Bandwidth:            float64(c.MaxDownloadBandwidth),
		Load:                 func(db string) load.Options { return loadOptions(&c, db) },
		LoadMemoryLimit:      int64(c.LoadMemoryLimit()),
		ContentType:          func(db string) string { return c.ForDB(db).ContentType },
		Delivery:             delivery(&c),
		RequestLogSample:     c.Debug.RequestLogSample,
		ShowKeys:             c.Debug.ShowKeys,
		TraceSample:          c.Tracing.Sample,
	}
}

// leastEncoded is the least number of bytes of an answer that is compressed: below it, compression takes more time than it saves.
const leastEncoded = 1 << 10

// delivery returns how answers are delivered.
func delivery(c *config.Config) server.Delivery {
	d := server.Delivery{Origins: c.HTTP.AllowedOrigins, Codings: c.HTTP.Compression, MinEncoded: leastEncoded,
		Caching: c.HTTP.CacheControl, CachingOf: make(map[string]string, len(c.DB))}
	for name, db := range c.DB {
		d.CachingOf[name] = db.CacheControl
	}
	return d
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

// loadOptions returns the load options of a database.
func loadOptions(c *config.Config, db string) load.Options {
	d := c.ForDB(db)
	compression, err := blocks.ParseCompression(c.Storage.Compression)
	if err != nil {
		// The configuration was checked against the same names, which a test holds together.
		compression = blocks.Snappy
	}
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
