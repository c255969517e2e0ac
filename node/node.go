package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sequins/load"
	"sequins/loadproc"
	"sequins/reads"
	"sequins/server"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
)

// releaseTimeout is how long the last readers may take to let go of their
// versions when all connections have been closed.
const releaseTimeout = 5 * time.Second

// starting is why a node is not ready that has not opened anything yet.
const starting = "it is starting: it joins the cluster and opens what is on its disk"

// A Node follows a source and serves what is in it. Set, Status, Ready,
// Refresh and Apply may be called from any goroutine, at any time.
type Node struct {
	o      Options
	log    *slog.Logger
	reads  *reads.Reader
	server *server.Server
	debug  *http.Server

	reloadable atomic.Pointer[Reloadable]

	catalog atomic.Pointer[map[string]*db] // what is served; never changed, only replaced
	health  health
	success sync.Map // the name of each db with a version that has _SUCCESS
	started time.Time

	slots     chan struct{}  // one for each load that runs
	plans     chan struct{}  // one for each version that is only planned
	listings  chan struct{}  // one for each database whose versions are being listed
	serving   chan struct{}  // closed when keys are being answered; loads begin then
	admitted  atomic.Bool    // likewise
	admission time.Time      // when that was; set before admitted
	looked    atomic.Bool    // the first look at the source has ended, whether it could be read or not
	listed    atomic.Bool    // the source could be read: its dbs are in the catalogue
	servers   sync.WaitGroup // the goroutines that answer on the listeners
	following sync.WaitGroup // follow, all dbs, and upkeep

	// patience ends when versions that are still being read at shutdown are
	// not waited for any more.
	patience context.Context
	giveUp   context.CancelFunc

	refresh chan struct{} // Refresh was called
	applied chan struct{} // Apply was called
	left    chan *db      // dbs that are done with

	// dbs are all there are, also those that are on their way out. They belong
	// to start, and then to follow.
	dbs map[string]*db
}

var (
	_ server.Catalog = (*Node)(nil)
	_ reads.Catalog  = (*Node)(nil)
)

// New returns a node that does nothing yet. Only if there is no error it owns
// the store and the listeners.
func New(o Options) (*Node, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{
		o: o, log: o.Logger,
		slots:    make(chan struct{}, o.MaxParallelLoads),
		plans:    make(chan struct{}, o.MaxParallelLoads),
		listings: make(chan struct{}, maxListings),
		serving:  make(chan struct{}),
		refresh:  make(chan struct{}, 1),
		applied:  make(chan struct{}, 1),
		left:     make(chan *db),
		dbs:      make(map[string]*db),
		started:  time.Now(),
	}
	n.catalog.Store(&map[string]*db{})
	n.patience, n.giveUp = context.WithCancel(context.Background())
	n.health.init()
	n.reads = reads.New(n, o.Reads)
	n.server = server.New(n, n.reads, o.Server)
	n.server.Hold()
	n.apply(o.Reloadable)
	if o.DebugListener != nil {
		n.debug = &http.Server{Handler: server.DebugHandler(o.Debug), ReadHeaderTimeout: 10 * time.Second}
	}
	return n, nil
}

// Run serves until ctx ends and Options.ShutdownDelay has passed, and returns
// when everything has come to its end: nil after an orderly shutdown. It answers
// from its first moment, requests for keys with 503 until what is on the disk is
// open. It is to be called once.
func (n *Node) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 2)

	n.listen(failed)
	interrupted := context.AfterFunc(ctx, stop)
	err := n.start(work)
	interrupted()
	var delay time.Duration // of the shutdown
	if err == nil {
		n.admit()
		n.log.Info("serving", "address", n.o.Listener.Addr().String())
		n.following.Go(func() { n.follow(work) })
		n.following.Go(func() { n.watchDisk(work) })
		n.following.Go(func() { n.sweep(work) })
		n.following.Go(func() { n.scrub(work) })
		if n.debug != nil && n.o.Debug.Expvars {
			n.following.Go(func() { n.o.Metrics.Server.Sample(work) })
		}
		select {
		case <-ctx.Done():
			delay = n.o.ShutdownDelay
		case err = <-failed:
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // the start was not over
	}
	return errors.Join(err, n.shutdown(stop, delay))
}

// admit has requests for keys answered, and lets loads begin.
func (n *Node) admit() {
	n.server.Admit()
	n.admission = time.Now()
	n.admitted.Store(true)
	close(n.serving)
}

// listen answers on the listeners, until shutdown or an error. Until the start is over the server refuses
// requests for keys.
func (n *Node) listen(failed chan<- error) {
	n.servers.Go(func() { failed <- n.server.Serve(n.o.Listener) })
	if n.debug == nil {
		return
	}
	n.servers.Go(func() {
		if err := n.debug.Serve(n.o.DebugListener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serving on %s: %w", n.o.DebugListener.Addr(), err)
		}
	})
	n.log.Info("serving metrics", "address", n.o.DebugListener.Addr().String())
}

// shutdown ends everything, from the outside to the inside. Requests are served
// for the delay, so that whoever follows /readyz can turn to other nodes.
func (n *Node) shutdown(stop context.CancelFunc, delay time.Duration) error {
	n.log.Info("shutting down", "delay", delay)
	n.server.Drain()
	delayed := time.After(delay)
	n.o.Cluster.Leave() // other nodes ask somebody else from now on

	stop() // cancels loads, and everything else that works in the background
	n.following.Wait()
	<-delayed

	ctx, cancel := context.WithTimeout(context.Background(), n.o.ShutdownTimeout)
	defer cancel()
	errs := []error{n.server.Shutdown(ctx)}
	n.reads.Stop()
	n.o.Listener.Close() //nolint:errcheck // mostly the server has closed it; not if the start failed
	if n.debug != nil {
		errs = append(errs, n.debug.Close())
		n.o.DebugListener.Close() //nolint:errcheck // likewise
	}
	n.servers.Wait()

	defer time.AfterFunc(releaseTimeout, n.giveUp).Stop()
	for _, d := range n.dbs {
		errs = append(errs, d.close())
	}
	n.giveUp()
	errs = append(errs, n.o.Store.Close())
	n.log.Info("shut down")
	return errors.Join(errs...)
}

// Set implements reads.Catalog.
func (n *Node) Set(db []byte) *version.Set {
	if d := (*n.catalog.Load())[string(db)]; d != nil {
		return d.set
	}
	return nil
}

// publish replaces the catalogue by one of the dbs that are not on their way
// out.
func (n *Node) publish() {
	served := maps.Clone(n.dbs)
	maps.DeleteFunc(served, func(_ string, d *db) bool { return d.leaving })
	n.catalog.Store(&served)
}

// Refresh has the source listed soon, and what has failed tried again.
func (n *Node) Refresh() { wake(n.refresh) }

// Apply takes over settings while the node runs. Loads that run keep theirs,
// except for the bandwidth.
func (n *Node) Apply(r Reloadable) {
	n.apply(r)
	wake(n.applied)
}

func (n *Node) apply(r Reloadable) {
	if r.Load == nil {
		r.Load = func(string) load.Options { return load.Options{} }
	}
	if r.AutoSuccess == nil {
		r.AutoSuccess = func(string) bool { return false }
	}
	n.reloadable.Store(&r)
	n.reads.SetContentType(r.ContentType)
	n.server.SetRequestLogSample(r.RequestLogSample)
	n.o.Tracer.SetSample(r.TraceSample)
	n.o.Loads.SetBandwidth(r.Bandwidth)
}

// startProcess starts the process of a load that begins now. The version is planned as in pinned, or, without that, as
// configured. workers bounds how many files are read at a time; 0 does not.
func (n *Node) startProcess(ctx context.Context, db, name string, workers int, pinned *store.Manifest, refuted []shard.Partitioner) (*loadproc.Process, error) {
	o, limit := n.loadOptions(db), n.reloadable.Load().LoadMemoryLimit
	if workers > 0 {
		o.Workers = workers
	}
	if pinned != nil {
		o = o.PlannedBy(*pinned)
	}
	return n.o.Loads.Start(ctx, loadproc.Job{DB: db, Version: name, Options: o, Refuted: refuted, MemoryLimit: limit})
}

// loadOptions returns the options for a load that begins now.
func (n *Node) loadOptions(db string) load.Options {
	r := n.reloadable.Load()
	o := r.Load(db)
	if r.AutoSuccess(db) {
		_, marked := n.success.Load(db)
		o.RequireSuccess = o.RequireSuccess || marked
	}
	return o
}

// wake sends to a channel that has room for one, if it is empty.
func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
