// Command steady measures how other work affects GETs: loads of new versions, and requests of other
// clients for keys that are not in memory.
//
// GETs are due at a fixed rate, and their time counts from when they were due, so a server that stops for a
// second is late for all requests of that second. The figure of a phase is the worst of the 99th
// percentiles of its seconds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/wire"
)

var (
	program = flag.String("sequins", "../bin/sequins", "the program under test")
	before  = flag.String("before", "", "another build of it, which is measured in turns with it")
	records = flag.Int("records", 0, "records of a version (5,000,000, short 200,000; with -cold 10,000,000, short 500,000)")
	files   = flag.Int("files", 4, "files, each with one partition")
	codec   = flag.String("compression", "fsst", "of blocks")
	rate    = flag.Float64("rate", 2000, "GETs a second that are measured")
	conns   = flag.Int("conns", 64, "connections for them")
	seconds = flag.Int("seconds", 0, "length of a phase in which nothing ends by itself (10, short 3)")
	oneCPU  = flag.Bool("one", false, "the server on one processor, the client on the other")
	isCold  = flag.Bool("cold", false, "measure what is felt of cold reads, in place of loads")
	asker   = flag.String("asker", "", "be those who ask beside, as JSON describes it (used by the program itself)")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if *asker != "" {
			return ask(*asker)
		}
		if *oneCPU {
			if err := proc.Pin(1); err != nil {
				return err
			}
		}
		full, short := 5_000_000, 200_000
		if *isCold {
			full, short = 10_000_000, 500_000
		}
		r := &run{env: env, program: *program, spec: data.Spec{Records: env.Size(*records, full, short), ValueSize: 100, Keys: "hex"}}
		r.dir = filepath.Join(env.Cache.Dir(), "steady.tmp")
		r.phase = time.Duration(env.Size(*seconds, 10, 3)) * time.Second
		defer r.stop()
		if *isCold {
			return r.cold()
		}
		return r.compareLoads()
	})
}

// run is the state that the measurements share.
type run struct {
	env     *setup.Env
	program string
	name    string // what its rows begin with
	spec    data.Spec
	input   string // source directory of the data set
	dir     string // where the server's source and store are
	phase   time.Duration
	daemon  *daemon.Daemon
	last    int // number of the newest version
}

func (r *run) cpus() string {
	if *oneCPU {
		return "0"
	}
	return ""
}

func (r *run) where() string {
	if *oneCPU {
		return "server on one core, client on the other"
	}
	return "server and client on two cores"
}

// start starts a server with one version.
func (r *run) start() (err error) {
	if err = os.RemoveAll(r.dir); err != nil {
		return err
	}
	in := data.Input{Spec: r.spec, Files: *files, Format: "plain", Sorted: true}
	if r.input, err = in.Build(r.env.Cache); err != nil {
		return err
	}
	if err = r.publish(); err != nil {
		return err
	}
	return r.serve()
}

func (r *run) serve() (err error) {
	r.daemon, err = daemon.Sequins(r.program, r.cpus(), filepath.Join(r.dir, "source"), filepath.Join(r.dir, "store"), *codec, "")
	return err
}

func (r *run) stop() {
	setup.Stop(r.daemon)
	os.RemoveAll(r.dir)
}

func (r *run) version() string { return fmt.Sprintf("v%04d", r.last) }

// publish puts the next version into the source, all at once, in the place of the one before.
func (r *run) publish() error {
	from, err := data.Files(r.input)
	if err != nil {
		return err
	}
	if err := proc.Warm(from...); err != nil {
		return err
	}
	db := filepath.Join(r.dir, "source", data.DB)
	before := filepath.Join(db, r.version())
	r.last++
	if err := data.Publish(r.input, filepath.Join(db, r.version())); err != nil {
		return err
	}
	if r.last > 2 {
		return os.RemoveAll(before)
	}
	return nil
}

var versionHeader = []byte("\r\nX-Sequins-Version: ")

// keys returns requests for random records with checks of their answers: each must be of version or
// of the one before it, and after the first answer of version, which sets seen, only of version.
func (r *run) keys(n int, seen func(version string)) ([][]byte, func(int, wire.Reply) error) {
	rng := rand.New(rand.NewPCG(5, 5))
	ids := make([]int, n)
	for i := range ids {
		ids[i] = rng.IntN(r.spec.Records)
	}
	newest := ""
	return r.requests(ids), func(i int, reply wire.Reply) error {
		version, _ := wire.HeaderValue(reply.Head, versionHeader)
		if string(version) != newest {
			if string(version) < newest {
				return fmt.Errorf("version %q after %q", version, newest)
			}
			newest = string(version)
			seen(newest)
		}
		return r.spec.Verify(ids[i], reply.Body, reply.Found, nil)
	}
}

// requests returns the GETs of some records.
func (r *run) requests(ids []int) [][]byte {
	all := make([][]byte, len(ids))
	for i, id := range ids {
		all[i] = wire.Get("/" + data.DB + "/" + string(r.spec.Key(nil, id)))
	}
	return all
}

// felt is the result of a phase for the client with the steady rate.
type felt struct {
	worst, half time.Duration // of the p99 of each second
	failures    int
}

// feel sends GETs at the steady rate for a duration or until the context is done.
func (r *run) feel(ctx context.Context, d time.Duration, requests [][]byte, check func(int, wire.Reply) error) (felt, error) {
	var f felt
	var each []time.Duration
	result, err := wire.Run(ctx, wire.Load{Addr: r.daemon.Addr, Conns: *conns, Requests: requests, Parse: wire.HTTP, Check: check,
		Duration: d, Rate: *rate, Second: func(_ int, s *wire.Times) { each = append(each, s.Quantile(0.99)) }})
	if err != nil {
		return f, err
	}
	if result.Failures > 0 {
		setup.Logf("failure: %v", result.Failure)
	}
	if len(each) == 0 {
		return f, errors.New("a phase was shorter than a second")
	}
	for _, p99 := range each {
		f.worst = max(f.worst, p99)
	}
	f.half = middle(each)
	f.failures = result.Failures
	return f, nil
}
