package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/conns"
	"sequins/internal/sleep"
	"sequins/node/turns"
	"sequins/node/upkeep"
	"sequins/observe/peerstatus"
	"sequins/reads"
	"sequins/reads/diff"
	"sequins/server"
	"sequins/server/resp"
	"sequins/version"
	"sequins/version/discovery"
)

// shutdownTimeout is how long requests in flight may take after the listeners are closed.
const shutdownTimeout = 30 * time.Second

// releaseTimeout is how long the last readers may take to release their versions after all connections are closed.
const releaseTimeout = 5 * time.Second

// A Node follows a source and serves its databases. Set, Status, Ready, Refresh and Apply are safe for concurrent use.
type Node struct {
	*shared
	follower *follower
	reads    *reads.Reader
	server   *server.Server
	redis    *resp.Server // nil if disabled
	debug    *http.Server
	settings *peerstatus.Comparer // nil if there are no other nodes

	started     time.Time
	servers     sync.WaitGroup // goroutines that serve the listeners
	stopWaiting context.CancelFunc
}

var (
	_ server.Catalog = (*Node)(nil)
	_ reads.Catalog  = (*Node)(nil)
)

// New returns a node that is not running. It takes over the store and the listeners only if it succeeds.
func New(o Options) (*Node, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	shared := &shared{
		o: o, log: o.Logger,
		health:   discovery.NewHealth(o.Logger),
		turns:    turns.New(o.MaxParallelLoads),
		listings: make(chan struct{}, maxListings),
		serving:  make(chan struct{}),
		refresh:  make(chan struct{}, 1),
	}
	n := &Node{
		shared: shared, follower: newFollower(shared),
		started: time.Now(),
	}
	if o.Server.Peers != nil && o.Server.Settings != nil {
		n.settings = peerstatus.NewComparer(peerstatus.New(o.Server.Peers, o.Server.Nodes), o.Name, o.Server.Settings, n.log)
	}
	n.patience, n.stopWaiting = context.WithCancel(context.Background())
	n.reads = reads.New(n, o.Reads)
	o.Server.Diff = diff.New(n.reads).Serve
	n.transfer = transfer.New(transfer.Options{Set: n.Set, Serving: n.follower.contents, Store: o.Store, Fits: o.Loads.Fits, Nodes: o.Server.Nodes,
		Metrics: o.Metrics.Transfer, Logger: o.Logger})
	o.Server.Blocks, o.Server.Serving = n.transfer.Serve, n.transfer.AnswerServing
	n.server = server.New(n, n.reads, o.Server)
	if o.RedisListener != nil {
		n.redis = n.newRedis()
	}
	n.reads.Hold()
	n.apply(o.Reloadable)
	if o.DebugListener != nil {
		o.Debug.Refresh, o.Debug.Probed = n.Refresh, n.server
		n.debug = &http.Server{Handler: server.DebugHandler(o.Debug), ReadHeaderTimeout: 10 * time.Second}
	}
	return n, nil
}

// Run serves until ctx ends and Options.ShutdownDelay has passed, and returns when all goroutines have ended: nil after an orderly shutdown. It
// accepts requests immediately, and answers requests for keys with 503 until the versions on disk are open. Until the node has joined the cluster, it
// at most answers from them. It must be called once.
func (n *Node) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 3) // one for each listener

	n.listen(failed)
	interrupted := context.AfterFunc(ctx, stop)
	err := n.follower.start(work, n.admit)
	interrupted()
	if err == nil {
		n.begin()
		n.following.Go(func() { n.follower.follow(work) })
		n.following.Go(func() {
			for sleep.For(work, time.Second) == nil {
				n.o.Metrics.Process.MeasureDisk()
			}
		})
		upkeep.Upkeep{Sets: n.follower.sets, ScrubPeriod: n.o.ScrubPeriod, Log: n.log}.Start(work, &n.following)
		if n.settings != nil {
			n.following.Go(func() { n.settings.Run(work) })
		}
		n.following.Go(func() { discovery.FollowRefresh(work, n.o.Source, n.Refresh) })
		n.following.Go(func() { n.o.Metrics.Server.FollowTraffic(work) })
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	var delay time.Duration // before the shutdown
	if ctx.Err() != nil && !n.admitted().IsZero() {
		delay = n.o.ShutdownDelay
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // ctx ended during the start
	}
	return errors.Join(err, n.shutdown(stop, delay))
}

// admit makes the server answer requests for keys.
func (n *Node) admit() {
	if now := time.Now(); n.admission.CompareAndSwap(nil, &now) {
		n.reads.Admit()
		n.log.Info("serving", "address", n.o.Listener.Addr().String())
	}
}

// begin lets loads begin, when the node has joined.
func (n *Node) begin() {
	n.admit()
	n.joined.Store(true)
	close(n.serving)
}

// listen serves the listeners until shutdown or an error. During the start the server refuses requests for keys.
func (n *Node) listen(failed chan<- error) {
	n.servers.Go(func() { failed <- n.server.Serve(n.secured(n.o.Listener)) })
	if n.redis != nil {
		n.servers.Go(func() { failed <- n.redis.Serve(n.secured(n.o.RedisListener)) })
		n.log.Info("serving the Redis protocol", "address", n.o.RedisListener.Addr().String())
	}
	if n.debug == nil {
		return
	}
	n.servers.Go(func() {
		if err := n.debug.Serve(conns.Patient(n.o.DebugListener, n.log)); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serving on %s: %w", n.o.DebugListener.Addr(), err)
		}
	})
	n.log.Info("serving metrics", "address", n.o.DebugListener.Addr().String())
}

// secured returns the listener to serve the connections of ln from, with TLS if it is configured.
func (n *Node) secured(ln net.Listener) net.Listener {
	ln = conns.Patient(ln, n.log)
	if n.o.TLS == nil {
		return ln
	}
	return tls.NewListener(ln, n.o.TLS)
}

// shutdown stops everything, from the outside in. Requests are served for the delay, so that load
// balancers that follow /readyz can switch to other nodes.
func (n *Node) shutdown(stop context.CancelFunc, delay time.Duration) error {
	n.log.Info("shutting down", "delay", delay)
	n.server.Drain()
	delayed := time.After(delay)
	n.o.Cluster.Leave() // other nodes stop sending requests

	n.transfer.Close()
	stop() // cancels loads and other background work
	n.following.Wait()
	<-delayed

	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	errs := []error{n.server.Shutdown(ctx)}
	n.reads.Stop()
	n.o.Listener.Close() //nolint:errcheck // already closed by the server, unless the start failed
	if n.redis != nil {
		n.o.RedisListener.Close() //nolint:errcheck // likewise
	}
	if n.debug != nil {
		errs = append(errs, n.debug.Close())
		n.o.DebugListener.Close() //nolint:errcheck // likewise
	}
	n.servers.Wait()

	defer time.AfterFunc(releaseTimeout, n.stopWaiting).Stop()
	for _, d := range n.follower.dbs {
		errs = append(errs, d.close())
	}
	n.stopWaiting()
	errs = append(errs, n.o.Store.Close())
	n.log.Info("shut down")
	return errors.Join(errs...)
}

// Set implements reads.Catalog.
func (n *Node) Set(db []byte) *version.Set {
	if d := (*n.follower.catalog.Load())[string(db)]; d != nil {
		return d.set
	}
	return nil
}

// Apply applies settings to a running node. Running loads keep theirs, except for the bandwidth.
func (n *Node) Apply(r Reloadable) {
	n.apply(r)
	n.asked.Add(1) // what is served may be another input by other options
	sleep.Wake(n.follower.applied)
	for _, d := range *n.follower.catalog.Load() {
		sleep.Wake(d.followed.lookAgain) // the rules of gates may have changed
		sleep.Wake(d.followed.reloaded)  // and what makes loads fail
	}
}

func (n *Node) apply(r Reloadable) {
	if r.DB == nil {
		r.DB = func(string) DB { return DB{} }
	}
	n.reloadable.Store(&r)
	n.reads.SetContentType(func(db string) string { return r.DB(db).ContentType })
	n.server.SetRequestLogSample(r.RequestLogSample)
	n.server.SetDelivery(r.Delivery)
	n.o.Tracer.SetSample(r.TraceSample)
	n.o.Loads.SetBandwidth(r.Bandwidth)
	n.transfer.SetBandwidth(r.PeerBandwidth)
	n.o.Loads.SetReserve(r.MinFreeDisk)
}

// newRedis returns the server of the Redis protocol. Its limits and rights are those of HTTP.
func (n *Node) newRedis() *resp.Server {
	o := n.o.Redis
	o.Conns, o.Tokens, o.Build = n.server.Connections(), n.o.Server.Tokens, n.o.Build
	o.Exists = func(db []byte) bool { return n.Set(db) != nil || n.MayExist(db) }
	o.Metrics, o.Logger = n.o.Metrics.Server, n.o.Logger
	return resp.New(n.reads, o)
}
