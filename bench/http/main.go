// Command http compares GETs over loopback: sequins, built and configured as for production, with
// servers that return a constant answer, and with others that look keys up.
//
// All servers run at once on one processor. A client on the other processor sends requests to them in
// turn and checks every answer. The cost of a request is from the kernel's accounting of the server.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
	"sequins/bench/internal/wire"
	"sequins/blocks"
	"sequins/test/ports"
)

var (
	program = flag.String("sequins", "../bin/sequins", "the program under test")
	records = flag.Int("records", 0, "records (10,000,000, short 100,000)")
	value   = flag.Int("value", 100, "bytes of a value; those above 64 KiB are compared with a file of nginx")
	seconds = flag.Float64("seconds", 1, "length of a turn")
	asked   = flag.Int("keys", 0, "different keys that are asked for (1,000,000, short 50,000)")
	cpu     = flag.Int("cpu", 0, "the processor of the servers")
	client  = flag.Int("client", 1, "the processor of the client")
	profile = flag.String("profile", "", "file for a processor profile of the reference, taken in an additional turn at the end")
	serve   = flag.String("serve", "", "be one of the servers, on the address behind the flags (used by the program itself)")
	blockAt = flag.String("blocks", "", "the blocks that it looks keys up in")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if *serve != "" {
			return serveForever(*serve, *blockAt, flag.Arg(0))
		}
		if err := proc.Pin(*client); err != nil {
			return err
		}
		r := &run{env: env, spec: data.Spec{Records: env.Size(*records, 10_000_000, 100_000), ValueSize: *value, Keys: "hex"}}
		defer r.stop()
		if err := r.start(); err != nil {
			return err
		}
		r.makeRequests(env.Size(*asked, 1_000_000, 50_000))
		if err := r.measure(); err != nil || *profile == "" {
			return err
		}
		return r.profile(*profile)
	})
}

// run is the state that the measurements share.
type run struct {
	env     *setup.Env
	spec    data.Spec
	debug   string // address of the reference's debug listener
	daemons []*daemon.Daemon
	servers []*server
	ids     []int // of the requested records
}

// server is a contender: how to ask a daemon.
type server struct {
	name     string
	daemon   *daemon.Daemon
	request  func(key []byte) []byte
	parse    wire.Parser
	constant bool // the answer does not depend on the key: no misses

	present, absent [][]byte
}

func (s *server) String() string { return s.name }

// reference is the contender that the others are compared with.
const reference = "sequins none"

var constantBody = sync.OnceValue(func() []byte { return data.Spec{Records: 1, ValueSize: *value, Keys: "hex"}.Value(nil, 0) })

func (r *run) start() error {
	source, err := (data.Input{Spec: r.spec, Files: 1, Format: "plain", Sorted: true}).Build(r.env.Cache)
	if err != nil {
		return err
	}
	if r.debug, err = ports.Free(); err != nil {
		return err
	}
	cpus := strconv.Itoa(*cpu)
	get := func(prefix string) func([]byte) []byte {
		return func(key []byte) []byte { return wire.Get(prefix + string(key)) }
	}
	general := func(key []byte) []byte { return wire.Get("/" + data.DB + "/" + string(key) + "?general") }
	var add = func(d *daemon.Daemon, err error, servers ...*server) error {
		if err != nil {
			return err
		}
		r.daemons = append(r.daemons, d)
		for _, s := range servers {
			s.daemon = d
			r.servers = append(r.servers, s)
		}
		return nil
	}
	sequins := func(codec string) error {
		extra := ""
		if *profile != "" && codec == "none" {
			extra = fmt.Sprintf("[debug]\nbind = %q\npprof = true\n", r.debug)
		}
		d, err := daemon.Sequins(*program, cpus, source, r.store(codec), codec, extra)
		return add(d, err, &server{name: "sequins " + codec, request: get("/" + data.DB + "/"), parse: wire.HTTP},
			&server{name: "sequins " + codec + ", not plain", request: general, parse: wire.HTTP})
	}
	self := func(name, kind string, constant bool) error {
		d, err := daemon.Self(cpus, "-serve", kind, "-value", strconv.Itoa(*value), "-blocks", filepath.Join(r.store("none"), "data", data.DB, data.Version))
		return add(d, err, &server{name: name, request: get("/" + data.DB + "/"), parse: wire.HTTP, constant: constant})
	}
	nginx, err := daemon.Nginx(cpus, constantBody())
	returns := &server{name: "nginx return", request: get("/return/"), parse: wire.HTTP, constant: true}
	file := &server{name: "nginx file", request: func([]byte) []byte { return wire.Get("/file") }, parse: wire.HTTP, constant: true}
	constants := []*server{returns, file}
	if *value > daemon.MaxReturn {
		constants = constants[1:]
	}
	return errors.Join(
		sequins("none"),
		sequins("fsst"),
		self("fasthttp, constant", "fasthttp", true),
		self("net/http, constant", "nethttp", true),
		self("net/http, same lookup", "lookup", false),
		add(nginx, err, constants...),
		r.startRedis(cpus, add),
	)
}

func (r *run) store(codec string) string {
	return filepath.Join(r.env.Cache.Dir(), "http "+codec+".tmp")
}

func (r *run) stop() {
	setup.Stop(r.daemons...)
	for _, codec := range []string{"none", "fsst"} {
		os.RemoveAll(r.store(codec))
	}
}

func (r *run) makeRequests(n int) {
	rng := rand.New(rand.NewPCG(3, 3))
	r.ids = make([]int, n)
	for i := range r.ids {
		r.ids[i] = rng.IntN(r.spec.Records)
	}
	for _, s := range r.servers {
		s.present, s.absent = make([][]byte, n), make([][]byte, n)
		for i, id := range r.ids {
			s.present[i], s.absent[i] = s.request(r.spec.Key(nil, id)), s.request(r.spec.Absent(nil, id))
		}
	}
}

func (r *run) measure() error {
	for _, hit := range []bool{true, false} {
		for _, conns := range []int{1, 16, 64} {
			title := fmt.Sprintf("GET, %s, %d connections, %d records", map[bool]string{true: "hits", false: "misses"}[hit], conns, r.spec.Records)
			t := table.New(title, reference).Column(wire.PerSecond, "%.0f", true).Column(wire.CPUTime, "%.2f", true).Column(wire.Half, "%.0f", false).Column(wire.Most, "%.0f", false)
			var servers []*server
			for _, s := range r.servers {
				if hit || !s.constant {
					servers = append(servers, s)
				}
			}
			if err := table.Rounds(r.env.Rounds, servers, func(_ int, s *server) error { return r.turn(t, s, conns, hit) }); err != nil {
				return err
			}
			if hit {
				r.check(t, conns)
			}
			r.env.Print(t)
		}
	}
	return nil
}

func (r *run) check(t *table.Table, conns int) {
	c := &r.env.Checks
	of := fmt.Sprintf(", %d connections", conns)
	if *value > blocks.LargeValue {
		c.AtMost("CPU of ours / nginx with a file"+of, t.Ratio(reference, "nginx file", wire.CPUTime), 1.1)
		return
	}
	c.AtMost("CPU of ours / fasthttp with a constant"+of, t.Ratio(reference, "fasthttp, constant", wire.CPUTime), 1.25)
	c.AtLeast("requests/s of ours / nginx with a file"+of, t.Ratio(reference, "nginx file", wire.PerSecond), 1)
	c.AtLeast("requests/s of ours / net/http with the same lookup"+of, t.Ratio(reference, "net/http, same lookup", wire.PerSecond), 1.5)
}

// turn asks one server over some connections for a while.
func (r *run) turn(t *table.Table, s *server, conns int, hit bool) error {
	l := wire.Load{Addr: s.daemon.Addr, Conns: conns, Requests: s.absent, Parse: s.parse, Duration: time.Duration(*seconds * float64(time.Second)), Check: wire.Absent}
	if hit {
		l.Requests, l.Check = s.present, r.present(s)
	}
	result, used, err := wire.Measure(l, s.daemon.CPU)
	if err != nil {
		return err
	}
	wire.Enter(t, s.name, result, used)
	return nil
}

// profile has the reference profile itself while 64 connections ask it for keys that it has.
func (r *run) profile(name string) error {
	s := r.servers[0]
	return wire.Profile(wire.Load{Addr: s.daemon.Addr, Conns: 64, Requests: s.present, Parse: s.parse, Check: r.present(s)}, r.debug, name)
}

// present checks that a value is there, and for one in 64 that it is the right one.
func (r *run) present(s *server) func(int, wire.Reply) error {
	if !s.constant {
		return wire.Present(r.spec, r.ids)
	}
	return func(i int, reply wire.Reply) error {
		if !reply.Found || len(reply.Body) != len(constantBody()) || i%64 == 0 && !bytes.Equal(reply.Body, constantBody()) {
			return fmt.Errorf("found %v, %d bytes that are not the constant", reply.Found, len(reply.Body))
		}
		return nil
	}
}
