// Package daemon owns the process of a node: it makes a running node out of a configuration.
//
// Start reads the configuration and its secrets. Open acquires what a node needs, the likely failures first: the source (which is
// not accessed), the listeners, the request log, the store with its lock, certificates and tokens, ZooKeeper and the client for other
// nodes, the recorder of events, the exporter of spans.
//
// Run serves, and tells systemd that the node is ready: its listeners are open. Meanwhile certificates and tokens follow their files, and a
// reload, by SIGHUP or by a request to the debug listener, reads the configuration again: what can be changed in a running node is
// passed to it, and it lists its source. When the context ends, no reload begins any more. The node drains and stops what it was
// given, and closes its listeners and its store. Then what was opened beside it is closed, in the order of its opening, so that the
// exporter of spans and the log, which the others may use to the end, are the last.
//
// No wait is for a file system: a reload that hangs is reported, and ends with the process.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"sequins/config"
	"sequins/node"
	"sequins/node/events"
	"sequins/observe/status"
	"sequins/store"
)

// A Given is where the configuration of a node is from.
type Given struct {
	Path  string        // the file; "" for none
	Flags []config.Flag // of the command line
}

// A Daemon is a node, and what was opened for it that it does not close itself.
type Daemon struct {
	// Address is the address of the listener for requests.
	Address string
	// Log is the log of the process.
	Log *slog.Logger

	given  Given
	level  *slog.LevelVar // of Log
	build  string
	config atomic.Pointer[config.Config] // in use

	node       *node.Node
	opened     closers
	keys       *keyring    // nil without TLS
	tokens     *tokenFile  // nil without tokens
	requestLog *requestLog // nil if disabled
	events     *events.Recorder

	stopping   context.Context // ends when the node shuts down: no reload begins any more, or is waited for
	stop       context.CancelFunc
	nextReload singleflight.Group
	reloading  sync.Mutex // held by the reload that runs
	reloaded   atomic.Pointer[reloaded]
}

// Start reads a configuration and opens what it names. The log is written to stderr, as the configuration says.
func Start(ctx context.Context, given Given, build string, stderr io.Writer) (*Daemon, error) {
	c, warnings, err := config.Load(given.Path, given.Flags...)
	if err != nil {
		return nil, err
	}
	if err := c.ReadSecrets(); err != nil {
		return nil, err
	}
	lines := newLines(func(lines []byte) error { _, err := stderr.Write(lines); return err })
	log, level := newLogger(lines, c.Log)
	for _, w := range warnings {
		log.Warn("configuration: " + w.Error())
	}
	log.Info("sequins starts", "version", build, "source", c.Source, "bind", c.Bind, "store", c.LocalStore)
	d, err := Open(ctx, c, build, log)
	if err != nil {
		lines.Close()
		return nil, err
	}
	d.given, d.level = given, level
	d.opened = append(d.opened, func() error { lines.Close(); return nil })
	return d, nil
}

// Open opens what a configuration names. Checks that are likely to fail and cheap come first.
func Open(ctx context.Context, c config.Config, build string, log *slog.Logger) (_ *Daemon, err error) {
	d := &Daemon{Log: log, level: new(slog.LevelVar), build: build}
	d.config.Store(&c)
	d.reloaded.Store(&reloaded{})
	d.stopping, d.stop = context.WithCancel(ctx)
	var passed closers // what the node closes
	defer func() {
		if err != nil {
			d.stop()
			err = errors.Join(err, passed.Close(), d.opened.Close())
		}
	}()
	o := d.options()
	if c.Datadog.URL != "" {
		agent, err := o.Metrics.SendTo(c.Datadog.URL, c.Sharding.ClusterName)
		if err != nil {
			return nil, fmt.Errorf("datadog.url: %w", err)
		}
		d.opened = append(d.opened, agent.Close)
	}
	if o.Source, err = OpenSource(ctx, &c); err != nil {
		return nil, err
	}
	if err := listenAll(&c, &o, &passed); err != nil {
		return nil, err
	}
	d.Address = o.Listener.Addr().String()
	if c.Debug.RequestLogEnable {
		if d.requestLog, err = openRequestLog(c.Debug.RequestLogFile); err != nil {
			return nil, err
		}
		d.opened = append(d.opened, d.requestLog.Close)
		o.Server.RequestLog = d.requestLog
	}
	if o.Store, err = store.Open(c.LocalStore); err != nil {
		return nil, fmt.Errorf("local_store: %w", err)
	}
	passed = append(passed, o.Store.Close)
	o.Metrics.Process.SetStore(c.LocalStore)
	if c.Sharding.Enabled {
		if o.Name, err = advertisedAddress(c.Sharding.AdvertisedHostname, o.Listener.Addr()); err != nil {
			return nil, err
		}
	}
	host, _, _ := net.SplitHostPort(o.Name) // "" for a single node
	if err := d.openKeys(host, &o); err != nil {
		return nil, err
	}
	if err := d.joinCluster(host, &o); err != nil {
		return nil, err
	}
	d.events = events.New(events.Options{Node: cmp.Or(o.Name, "localhost"), Target: target(&c.Events), Build: build, Metrics: o.Metrics.Events, Logger: log})
	d.opened = append(d.opened, d.events.Close)
	o.Events = d.events
	if err := d.openTracer(ctx, &o); err != nil { // is closed last, because closing the others ends spans
		return nil, err
	}
	d.node, err = node.New(o)
	return d, err
}

// openKeys reads the certificates and the tokens of a node that other nodes reach by host, "" if there are none.
func (d *Daemon) openKeys(host string, o *node.Options) (err error) {
	c := d.config.Load()
	d.keys, err = openKeyring(c.TLS, host, d.Log)
	if host == "" && isExpired(err) {
		d.Log.Warn("the certificate of this node is not valid now: clients refuse it", "error", err)
	} else if err != nil {
		return err
	}
	if d.keys != nil {
		o.TLS = d.keys.server()
	}
	if d.tokens, err = openTokens(c.Auth, d.Log); err != nil {
		return err
	}
	if d.tokens != nil {
		o.Server.Tokens = d.tokens.tokens
	}
	return nil
}

// Run runs the node until the context ends, and closes what Open has opened.
func (d *Daemon) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, d.stop)()
	following, end := context.WithCancel(ctx)
	if d.keys != nil {
		go d.keys.follow(following)
	}
	if d.tokens != nil {
		go d.tokens.follow(following)
	}
	d.notify("READY=1")
	defer context.AfterFunc(ctx, func() { // with the time that it takes at most, and some seconds
		d.notify(fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", (d.ShutdownDelay() + time.Minute).Microseconds()))
	})()
	err := d.node.Run(ctx)
	end()
	d.stop()
	return errors.Join(err, d.opened.Close())
}

// Refresh makes the node list its source.
func (d *Daemon) Refresh() { d.node.Refresh() }

// ShutdownDelay is how long requests are served after the end of the context of Run.
func (d *Daemon) ShutdownDelay() time.Duration { return d.config.Load().ShutdownDelay }

// settings returns the settings of this node that others compare with theirs. Tokens are compared by a part of the hash of their file.
func (d *Daemon) settings() status.Settings {
	all := status.Settings(d.config.Load().Alike())
	all[status.SettingBuild] = d.build
	if d.tokens != nil {
		all["auth.tokens_file"] = d.tokens.tokens.Fingerprint()
	}
	return all
}

// describeFiles adds the certificate, the tokens and the last reload to a status.
func (d *Daemon) describeFiles(st *status.Status) {
	if d.keys != nil {
		st.Certificate = status.Certificate{Expires: d.keys.now().own.Leaf.NotAfter.UTC(), Error: d.keys.problem()}
	}
	if d.tokens != nil {
		st.TokensError = d.tokens.problem()
	}
	last := d.reloaded.Load()
	if st.RestartKeys = last.restart; last.err != nil {
		st.ReloadError, st.ReloadErrorSince = last.err.Error(), last.at
	}
}

// listenAll binds the addresses of the configuration.
func listenAll(c *config.Config, o *node.Options, passed *closers) (err error) {
	for _, l := range []struct {
		key, address string
		to           *net.Listener
	}{{"bind", c.Bind, &o.Listener}, {"debug.bind", c.Debug.Bind, &o.DebugListener}, {"redis.bind", c.Redis.Bind, &o.RedisListener}} {
		if l.address == "" {
			continue
		}
		if *l.to, err = net.Listen("tcp", l.address); err != nil {
			return fmt.Errorf("%s: %w", l.key, err)
		}
		*passed = append(*passed, (*l.to).Close)
	}
	return nil
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
