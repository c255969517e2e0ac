// Command watched measures the cost of monitoring: it compares a node whose metrics are scraped, whose page is
// open in twenty browsers and that traces one request in a hundred with a node without monitoring.
//
// Both run on one processor. The client, which sends requests to them in turn, and the monitoring run on the other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
	"sequins/bench/internal/wire"
	"sequins/test/ports"
)

var (
	program  = flag.String("sequins", "../bin/sequins", "the program under test")
	records  = flag.Int("records", 0, "records (1,000,000, short 50,000)")
	seconds  = flag.Float64("seconds", 6, "length of a turn")
	cpu      = flag.Int("cpu", 0, "the processor of the nodes")
	client   = flag.Int("client", 1, "the processor of the client and of those who watch")
	browsers = flag.Int("browsers", 20, "pages that are open")
	scrape   = flag.Duration("scrape", 5*time.Second, "time between two scrapes")
	sample   = flag.Float64("sample", 0.01, "fraction of the requests that is traced")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if err := proc.Pin(*client); err != nil {
			return err
		}
		r := &run{env: env, spec: data.Spec{Records: env.Size(*records, 1_000_000, 50_000), ValueSize: 100, Keys: "hex"}}
		defer r.stop()
		if err := r.start(); err != nil {
			return err
		}
		return r.measure()
	})
}

type run struct {
	env       *setup.Env
	spec      data.Spec
	collector *httptest.Server
	spans     atomic.Int64 // bytes of them that have come
	nodes     []*node
	ids       []int
	requests  [][]byte
}

// node is a contender.
type node struct {
	name   string
	daemon *daemon.Daemon
	debug  string // address of its metrics; "" if it is not watched
}

func (n *node) String() string { return n.name }

const (
	alone   = "nobody watches"
	watched = "watched"
)

// pagePeriod is how often a page that is open asks for itself again, as statuspage/page.js has it.
const pagePeriod = 3 * time.Second

func (r *run) start() error {
	source, err := (data.Input{Spec: r.spec, Files: 1, Format: "plain", Sorted: true}).Build(r.env.Cache)
	if err != nil {
		return err
	}
	r.collector = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		r.spans.Add(n)
	}))
	debug, err := ports.Free()
	if err != nil {
		return err
	}
	extra := fmt.Sprintf("[debug]\nbind = %q\n[tracing]\notlp_endpoint = %q\nsample = %v\n", debug, r.collector.URL, *sample)
	for _, n := range []*node{{name: alone}, {name: watched, debug: debug}} {
		conf := ""
		if n.debug != "" {
			conf = extra
		}
		store := filepath.Join(r.env.Cache.Dir(), "watched "+strconv.Itoa(len(r.nodes))+".tmp")
		if n.daemon, err = daemon.Sequins(*program, strconv.Itoa(*cpu), source, store, "none", conf); err != nil {
			return err
		}
		r.nodes = append(r.nodes, n)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range min(r.spec.Records, 100_000) {
		id := rng.IntN(r.spec.Records)
		r.ids = append(r.ids, id)
		r.requests = append(r.requests, wire.Get("/"+data.DB+"/"+string(r.spec.Key(nil, id))))
	}
	return nil
}

func (r *run) stop() {
	for _, n := range r.nodes {
		setup.Stop(n.daemon)
	}
	if r.collector != nil {
		r.collector.Close()
	}
}

func (r *run) measure() error {
	t := table.New(fmt.Sprintf("GET, hits, 64 connections, %v; %d browsers, a scrape every %v, %v traced", r.spec, *browsers, *scrape, *sample), alone).
		Column(wire.PerSecond, "%.0f", true).Column(wire.CPUTime, "%.2f", true).Column(wire.Half, "%.0f", true).Column(wire.Most, "%.0f", true)
	if err := table.Rounds(r.env.Rounds, r.nodes, func(_ int, n *node) error { return r.turn(t, n) }); err != nil {
		return err
	}
	if *sample > 0 && r.spans.Load() == 0 {
		return errors.New("no span has come to the collector")
	}
	r.env.Checks.AtLeast("requests/s of watched / alone", t.Ratio(watched, alone, wire.PerSecond), 0.97)
	r.env.Checks.AtMost("CPU a request of watched / alone", t.Ratio(watched, alone, wire.CPUTime), 1.03)
	r.env.Print(t)
	return nil
}

// turn sends requests to one node over some connections for a while, with or without monitoring.
func (r *run) turn(t *table.Table, n *node) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	var failed atomic.Pointer[error]
	if n.debug != "" {
		look := func(period time.Duration, url string) {
			watching.Go(func() {
				if err := watch(ctx, period, url); err != nil {
					failed.Store(&err)
				}
			})
		}
		look(*scrape, "http://"+n.debug+"/metrics")
		for range *browsers {
			look(pagePeriod, "http://"+n.daemon.Addr+"/")
		}
	}
	l := wire.Load{Addr: n.daemon.Addr, Conns: 64, Requests: r.requests, Parse: wire.HTTP, Check: wire.Present(r.spec, r.ids), Duration: time.Duration(*seconds * float64(time.Second))}
	result, used, err := wire.Measure(l, n.daemon.CPU)
	cancel()
	watching.Wait()
	if err != nil {
		return err
	}
	if e := failed.Load(); e != nil {
		return *e
	}
	wire.Enter(t, n.name, result, used)
	return nil
}

// watch fetches a page again and again, over a connection of its own, the first time at any moment of a period.
func watch(ctx context.Context, period time.Duration, url string) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	wait := rand.N(period)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if err := fetch(ctx, transport, url); err != nil && ctx.Err() == nil {
			return err
		}
		wait = period
	}
}

func fetch(ctx context.Context, transport *http.Transport, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/html,application/openmetrics-text;version=1.0.0") // as the page and Prometheus do
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n == 0 || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s, %d bytes, %w", url, resp.Status, n, err)
	}
	return nil
}
