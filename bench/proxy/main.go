// Command proxy measures the cost of a request to a node that does not hold the key and requests it from
// one that does. Two nodes run, each only the HTTP server of sequins: the holder has a block and the asker
// nothing. A client requests the same keys from both in turn and checks every answer.
//
// Both nodes run on one processor, the client on the other. CPU is that of both nodes, from the
// kernel's accounting.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/node"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
	"sequins/bench/internal/wire"
	"sequins/blocks"
	"sequins/test/ports"
)

var (
	records = flag.Int("records", 0, "records (1,000,000, short 50,000)")
	value   = flag.Int("value", 100, "bytes of a value")
	seconds = flag.Float64("seconds", 1, "length of a turn")
	cpu     = flag.String("cpu", "0", "the processors of the nodes")
	client  = flag.Int("client", 1, "the processor of the client")
	profile = flag.String("profile", "", "file for a processor profile of the asker, taken in an additional turn at the end")
	be      = flag.String("be", "", "be a node, as JSON describes it, on the address behind the flags (used by the program itself)")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if *be != "" {
			return node.Serve(*be, flag.Arg(0))
		}
		if err := proc.Pin(*client); err != nil {
			return err
		}
		r := &run{env: env, spec: data.Spec{Records: env.Size(*records, 1_000_000, 50_000), ValueSize: *value, Keys: "hex"}}
		defer func() { setup.Stop(r.asker, r.holder) }()
		if err := r.start(); err != nil {
			return err
		}
		if err := r.measure(); err != nil || *profile == "" {
			return err
		}
		return r.profile(*profile)
	})
}

type run struct {
	env             *setup.Env
	spec            data.Spec
	debug           string
	holder, asker   *daemon.Daemon
	ids             []int
	present, absent [][]byte
}

// contender is one of the two ways to ask.
type contender struct {
	name string
	addr string
}

func (c contender) String() string { return c.name }

const (
	local   = "local"
	proxied = "proxied"
)

func (r *run) start() (err error) {
	path, err := r.env.Cache.Fresh(fmt.Sprintf("%v proxy.block", r.spec), r.spec.Size()*5/4+1<<20, func(path string) error {
		return r.spec.WriteBlock(path, blocks.WriterOptions{Partitions: 1, BlockSize: 4096, TempDir: r.env.Cache.Dir()})
	})
	if err != nil {
		return err
	}
	if r.holder, err = (node.Node{Partitions: 1, Blocks: []string{path}}).Start(*cpu); err != nil {
		return err
	}
	if r.debug, err = ports.Free(); err != nil {
		return err
	}
	if r.asker, err = (node.Node{Partitions: 1, Peer: r.holder.Addr, Debug: r.debug}).Start(*cpu); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range min(r.spec.Records, 100_000) {
		id := rng.IntN(r.spec.Records)
		r.ids = append(r.ids, id)
		r.present = append(r.present, wire.Get("/"+data.DB+"/"+string(r.spec.Key(nil, id))))
		r.absent = append(r.absent, wire.Get("/"+data.DB+"/"+string(r.spec.Absent(nil, id))))
	}
	return nil
}

// opened is a column.
const opened = "connections opened"

func (r *run) measure() error {
	c := &r.env.Checks
	contenders := []contender{{local, r.holder.Addr}, {proxied, r.asker.Addr}}
	for _, hit := range []bool{true, false} {
		for _, conns := range []int{1, 16, 64} {
			of := fmt.Sprintf("%s, %d connections", map[bool]string{true: "hits", false: "misses"}[hit], conns)
			t := table.New("GET, "+of+", "+r.spec.String()+", CPU of both nodes", local).Column(wire.PerSecond, "%.0f", true).Column(wire.CPUTime, "%.2f", true).
				Column(wire.Half, "%.0f", true).Column(wire.Most, "%.0f", true).Column(opened, "%.0f", false)
			if err := r.turn(table.New("", ""), contenders[1], conns, hit); err != nil { // opens the connections
				return err
			}
			if err := table.Rounds(r.env.Rounds, contenders, func(_ int, s contender) error { return r.turn(t, s, conns, hit) }); err != nil {
				return err
			}
			c.AtMost("CPU of proxied / local, "+of, t.Ratio(proxied, local, wire.CPUTime), 3)
			c.AtMost("p50 of proxied / local, "+of, t.Ratio(proxied, local, wire.Half), 3)
			c.Zero("connections opened in a turn, "+of, t.Median(proxied, opened))
			r.env.Print(t)
		}
	}
	return nil
}

// turn asks one node over some connections for a while.
func (r *run) turn(t *table.Table, s contender, conns int, hit bool) error {
	l := wire.Load{Addr: s.addr, Conns: conns, Requests: r.absent, Parse: wire.HTTP, Check: wire.Absent, Duration: time.Duration(*seconds * float64(time.Second))}
	if hit {
		l.Requests, l.Check = r.present, wire.Present(r.spec, r.ids)
	}
	before, err := r.opened()
	if err != nil {
		return err
	}
	result, used, err := wire.Measure(l, r.cpu)
	if err != nil {
		return err
	}
	after, err := r.opened()
	if err != nil {
		return err
	}
	wire.Enter(t, s.name, result, used)
	t.Add(s.name, opened, after-before)
	return nil
}

// cpu is the processor time of both nodes.
func (r *run) cpu() (time.Duration, error) {
	a, err := r.holder.CPU()
	b, err2 := r.asker.CPU()
	return a + b, errors.Join(err, err2)
}

var openedLine = regexp.MustCompile(`(?m)^sequins_proxy_connections_opened_total (\S+)$`)

// opened is how many connections the asker has opened so far.
func (r *run) opened() (float64, error) {
	resp, err := http.Get("http://" + r.debug + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	m := openedLine.FindSubmatch(body)
	if m == nil {
		return 0, errors.New("the asker does not count its connections")
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// profile has the asker profile itself while 16 connections ask it.
func (r *run) profile(name string) error {
	return wire.Profile(wire.Load{Addr: r.asker.Addr, Conns: 16, Requests: r.present, Parse: wire.HTTP, Check: wire.Present(r.spec, r.ids)}, r.debug, name)
}
