package main

import (
	"cmp"
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
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"sequins/blocks"
	"sequins/config"
	"sequins/load"
	"sequins/node"
	"sequins/node/events"
	"sequins/node/turns"
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

// absolute makes a path absolute. URLs and empty strings are unchanged.
func absolute(path string) (string, error) {
	if path == "" || strings.Contains(path, "://") {
		return path, nil
	}
	return filepath.Abs(path)
}

// given returns the configuration file to read, "" if there is none and the flags or the environment name a source, and the keys that
// flags set. Relative paths are relative to the current directory.
func (f *serveFlags) given() (path string, overrides []config.Flag, err error) {
	path = cmp.Or(f.config, config.Find(config.SearchPath))
	if path == "" && f.source == "" && os.Getenv(config.Variable("source")) == "" {
		return "", nil, errNoConfig()
	}
	for _, flag := range []config.Flag{
		{Name: "--source", Key: "source", Value: f.source},
		{Name: "--bind", Key: "bind", Value: f.bind},
		{Name: "--local-store", Key: "local_store", Value: f.localStore},
		{Name: "--debug-bind", Key: "debug.bind", Value: f.debugBind},
	} {
		if flag.Key == "source" || flag.Key == "local_store" {
			if flag.Value, err = absolute(flag.Value); err != nil {
				return "", nil, err
			}
		}
		if flag.Value != "" {
			overrides = append(overrides, flag)
		}
	}
	return path, overrides, nil
}

// withSource calls run with the configuration and its source.
func (f *serveFlags) withSource(ctx context.Context, run func(c *config.Config, src source.Source) error) error {
	path, overrides, err := f.given()
	if err != nil {
		return err
	}
	c, _, err := config.Load(path, overrides...)
	if err != nil {
		return err
	}
	src, err := openSource(ctx, &c)
	if err != nil {
		return err
	}
	return run(&c, src)
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
		base, systemd.secure = secureURL(base), s.keys.client()
		systemd.secure.InsecureSkipVerify = true // it is this process
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	r := &reloader{
		path: path, searched: flags.config == "", overrides: overrides, running: c, serving: s, systemd: systemd,
		level: level, log: log, stopping: stopping,
	}
	s.reload = r.reload
	err = untilSignal(ctx, log, c.ShutdownDelay+endPatience, func() { r.request() }, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, stop)()
		return systemd.follow(ctx, base, s.run)
	})
	stop()
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
	config atomic.Pointer[config.Config]        // of which other nodes compare parts with theirs

	requestLog *requestLog // nil if disabled
	events     *events.Recorder
}

// run runs the node, and follows the files of the certificates and tokens meanwhile. It does not wait for a file system that does not answer.
func (s *serving) run(ctx context.Context) error {
	following, end := context.WithCancel(ctx)
	defer end()
	if s.keys != nil {
		go s.keys.follow(following)
	}
	if s.tokens != nil {
		go s.tokens.follow(following)
	}
	return s.node.Run(ctx)
}

// open acquires the resources of a node. Checks that are likely to fail and cheap come first.
func open(ctx context.Context, c config.Config, log *slog.Logger) (_ *serving, err error) {
	s := new(serving)
	s.config.Store(&c)
	var opened closers // which the node closes
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close(), s.given.Close())
		}
	}()
	o := s.options(&c, log)
	if c.Datadog.URL != "" {
		agent, err := o.Metrics.SendTo(c.Datadog.URL, c.Sharding.ClusterName)
		if err != nil {
			return nil, fmt.Errorf("datadog.url: %w", err)
		}
		s.given = append(s.given, agent.Close)
	}
	if o.Source, err = openSource(ctx, &c); err != nil {
		return nil, err
	}
	if err := listenAll(&c, &o, &opened); err != nil {
		return nil, err
	}
	s.address = o.Listener.Addr().String()
	if c.Debug.RequestLogEnable {
		if s.requestLog, err = openRequestLog(c.Debug.RequestLogFile); err != nil {
			return nil, err
		}
		s.given = append(s.given, s.requestLog.Close)
		o.Server.RequestLog = s.requestLog
	}
	if o.Store, err = store.Open(c.LocalStore); err != nil {
		return nil, fmt.Errorf("local_store: %w", err)
	}
	opened = append(opened, o.Store.Close)
	o.Metrics.Process.SetStore(c.LocalStore)
	if c.Sharding.Enabled {
		if o.Name, err = advertisedAddress(c.Sharding.AdvertisedHostname, o.Listener.Addr()); err != nil {
			return nil, err
		}
	}
	host, _, _ := net.SplitHostPort(o.Name) // "" for a single node
	s.keys, err = openKeyring(c.TLS, host, log)
	if host == "" && isExpired(err) {
		log.Warn("the certificate of this node is not valid now: clients refuse it", "error", err)
	} else if err != nil {
		return nil, err
	}
	if s.keys != nil {
		o.TLS = s.keys.server()
	}
	if s.tokens, err = openTokens(c.Auth, log); err != nil {
		return nil, err
	}
	if s.tokens != nil {
		o.Server.Tokens = s.tokens.tokens
	}
	if err := joinCluster(&c, host, s.keys, &o, &s.given); err != nil {
		return nil, err
	}
	s.events = events.New(events.Options{Node: cmp.Or(o.Name, "localhost"), Target: target(&c.Events), Build: o.Build, Metrics: o.Metrics.Events, Logger: log})
	s.given = append(s.given, s.events.Close)
	o.Events = s.events
	if err := openTracer(ctx, &c, &o, &s.given); err != nil {
		return nil, err
	}
	s.node, err = node.New(o)
	return s, err
}

// listenAll binds the addresses of the configuration.
func listenAll(c *config.Config, o *node.Options, opened *closers) (err error) {
	for _, l := range []struct {
		key, address string
		to           *net.Listener
	}{{"bind", c.Bind, &o.Listener}, {"debug.bind", c.Debug.Bind, &o.DebugListener}, {"redis.bind", c.Redis.Bind, &o.RedisListener}} {
		if l.address == "" {
			continue
		}
		if *l.to, err = listen(l.key, l.address); err != nil {
			return err
		}
		*opened = append(*opened, (*l.to).Close)
	}
	return nil
}

// options returns the options of the node that need no resources.
func (s *serving) options(c *config.Config, log *slog.Logger) node.Options {
	o := node.Options{
		SourceName: c.Source, Loads: loadLauncher(c), MaxParallelLoads: c.MaxParallelLoads, ShutdownDelay: c.ShutdownDelay, ScrubPeriod: c.ScrubPeriod,
		Build: buildName(), Metrics: metrics.New(), Logger: log, Reloadable: reloadable(*c), Describe: []func(*status.Status){s.describeKeys},
	}
	o.Server.MaxConns, o.Server.Settings = maxConnections(c.MaxConnections), s.settings
	o.Reads.MaxBatchBytes, o.Reads.MaxScans = int64(c.Batch.MaxBytes), config.MaxScans()
	if o.Redis.Idle = c.Redis.IdleTimeout; c.Redis.IdleTimeout == 0 {
		o.Redis.Idle = -1 // no limit
	}
	o.Debug.Pprof, o.Debug.Reload = c.Debug.Pprof, func() ([]string, error) { return s.reload() }
	return o
}

// target returns where events are sent, nil for nowhere.
func target(e *config.Events) *events.Target {
	if e.Webhook == "" {
		return nil
	}
	return &events.Target{URL: e.Webhook, Secret: e.Secret}
}

// settings returns the settings of this node that others compare with theirs. Tokens are compared by a part of the hash of their file.
func (s *serving) settings() status.Settings {
	all := status.Settings(s.config.Load().Alike())
	if s.tokens != nil {
		all["auth.tokens_file"] = s.tokens.tokens.Fingerprint()
	}
	return all
}

// describeKeys adds the certificate and the tokens to a status.
func (s *serving) describeKeys(st *status.Status) {
	if s.keys != nil {
		st.Certificate = status.Certificate{Expires: s.keys.now().own.Leaf.NotAfter.UTC(), Error: s.keys.problem()}
	}
	if s.tokens != nil {
		st.TokensError = s.tokens.problem()
	}
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

// closers close resources, at the end or if opening a later one fails.
type closers []func() error

func (cs closers) Close() error {
	var errs []error
	for _, c := range cs {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// listen binds an address. The error names the key and the reason.
func listen(key, address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	var reason syscall.Errno
	if errors.As(err, &reason) {
		err = reason
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", key, address, err)
	}
	return ln, nil
}

// leastEncoded is the least number of bytes of an answer that is compressed: below it, compression takes more time than it saves.
const leastEncoded = 1 << 10

// reloadable returns the part of the configuration that a running node can apply.
func reloadable(c config.Config) node.Reloadable {
	of := func(name string) node.DB {
		db := c.ForDB(name)
		windows, _ := turns.ParseWindows(db.LoadWindow) // it is valid
		return node.DB{Load: loadOptions(&c, name), AutoSuccess: db.RequireSuccessFile == config.RequireAuto, KeepVersions: db.KeepVersions,
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

// loadOptions returns the load options of a database.
func loadOptions(c *config.Config, db string) load.Options {
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
