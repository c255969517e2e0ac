// Command redis compares the Redis protocol of sequins with redis-server, by redis-benchmark: single GETs and pipelines of 16 and
// of a hundred, over 1, 8 and 32 connections, on random keys that exist.
//
// Both servers run at once on one processor, and redis-benchmark on the other sends requests to them in turn. If
// redis-benchmark is the bottleneck, the requests per second of both servers are its own; the cost of a key is then the
// processor time, from the kernel's accounting. An additional client, which is faster than redis-benchmark and checks
// the values, sends the same pipelines.
package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
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
	program = flag.String("sequins", "../bin/sequins", "the program under test")
	records = flag.Int("records", 0, "records (1,000,000, short 50,000)")
	value   = flag.Int("value", 100, "bytes of a value")
	seconds = flag.Float64("seconds", 1, "length of a turn of the additional client")
	gets    = flag.Int("gets", 0, "single GETs of a turn (200,000, short 20,000)")
	cpu     = flag.String("cpu", "0", "the processor of the servers")
	client  = flag.Int("client", 1, "the processor of the clients")
	profile = flag.String("profile", "", "beginning of the names of two files for processor profiles of sequins, taken in additional turns at the end")
)

// connections are how many clients connect.
var connections = []int{1, 8, 32}

// depth is the number of GETs in a pipeline of the additional client.
const depth = 100

// pipelines are those of redis-benchmark, with what the rate must be of that of redis.
var pipelines = []struct {
	gets  int
	least float64
}{{1, 1}, {16, 1}, {depth, 1.5}}

func main() {
	setup.Main(func(env *setup.Env) error {
		if err := proc.Pin(*client); err != nil {
			return err
		}
		r := &run{env: env, spec: data.Spec{Records: env.Size(*records, 1_000_000, 50_000), ValueSize: *value, Keys: "user"}}
		defer r.stop()
		if err := r.start(); err != nil {
			return err
		}
		r.makePipelines()
		if err := r.measure(env.Size(*gets, 200_000, 20_000)); err != nil || *profile == "" {
			return err
		}
		return errors.Join(r.profile(1), r.profile(depth))
	})
}

type run struct {
	env       *setup.Env
	spec      data.Spec
	debug     string // address of the debug listener
	servers   []*server
	pipelines [][]byte
	asked     [][]int // the records of each pipeline
}

// server is a contender.
type server struct {
	name   string
	daemon *daemon.Daemon
	addr   string // of the Redis protocol
}

func (s *server) String() string { return s.name }

const (
	reference = "redis"
	ours      = "sequins"
)

// key returns the key of a record, which redis-benchmark can make, too.
func key(dst []byte, i int) []byte { return fmt.Appendf(dst, "%s/key:%012d", data.DB, i) }

func (r *run) start() (err error) {
	source, err := r.env.Cache.Get(fmt.Sprintf("redis %v", r.spec), r.spec.Size()*6/5+1<<20, r.build)
	if err != nil {
		return err
	}
	redis, err := daemon.Redis(*cpu)
	if err != nil {
		return err
	}
	r.servers = append(r.servers, &server{reference, redis, redis.Addr})
	setup.Logf("filling redis")
	if err := wire.FillRedis(redis.Addr, r.spec, key); err != nil {
		return err
	}
	addr, err := ports.Free()
	if err != nil {
		return err
	}
	if r.debug, err = ports.Free(); err != nil {
		return err
	}
	extra := fmt.Sprintf("[redis]\nbind = %q\n[debug]\nbind = %q\npprof = true\n", addr, r.debug)
	store := filepath.Join(r.env.Cache.Dir(), "redis.tmp")
	if err := os.RemoveAll(store); err != nil { // that of an earlier run, maybe with other records
		return err
	}
	d, err := daemon.Sequins(*program, *cpu, source, store, "none", extra)
	if err != nil {
		return err
	}
	r.servers = append(r.servers, &server{ours, d, addr})
	return nil
}

func (r *run) stop() {
	for _, s := range r.servers {
		setup.Stop(s.daemon)
	}
}

// makePipelines makes the pipelines of the additional client.
func (r *run) makePipelines() {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 5000 {
		var pipeline []byte
		ids := make([]int, depth)
		for i := range ids {
			ids[i] = rng.IntN(r.spec.Records)
			pipeline = append(pipeline, wire.RedisGet(key(nil, ids[i]))...)
		}
		r.pipelines, r.asked = append(r.pipelines, pipeline), append(r.asked, ids)
	}
}

// columns are the names of the columns of a pipeline, or of the additional client.
func columns(what string) (rate, cpu string) { return "GETs/s, " + what, "µs a GET, " + what }

func (r *run) measure(n int) error {
	for _, conns := range connections {
		t := table.New(fmt.Sprintf("GETs by redis-benchmark, %d connections, %v", conns, r.spec), reference)
		for _, p := range pipelines {
			rate, cpu := columns(strconv.Itoa(p.gets) + " at a time")
			t.Column(rate, "%.0f", true).Column(cpu, "%.3f", true)
		}
		rate, cpu := columns("checked")
		t.Column(rate, "%.0f", true).Column(cpu, "%.3f", true)
		err := table.Rounds(r.env.Rounds, r.servers, func(_ int, s *server) error {
			for _, p := range pipelines {
				ask := func() (float64, int, error) { return r.benchmark(s, conns, n*min(p.gets, 10), p.gets) }
				if err := r.turn(t, s, strconv.Itoa(p.gets)+" at a time", ask); err != nil {
					return err
				}
			}
			return r.turn(t, s, "checked", func() (float64, int, error) { return r.ask(s, conns) })
		})
		if err != nil {
			return err
		}
		for _, p := range pipelines {
			rate, _ := columns(strconv.Itoa(p.gets) + " at a time")
			r.env.Checks.AtLeast(fmt.Sprintf("%s, %d connections / redis", rate, conns), t.Ratio(ours, reference, rate), p.least)
		}
		r.env.Print(t)
	}
	return nil
}

// turn asks a server, and enters the rate and the processor time.
func (r *run) turn(t *table.Table, s *server, what string, ask func() (rate float64, keys int, err error)) error {
	before, err := s.daemon.CPU()
	if err != nil {
		return err
	}
	rate, keys, err := ask()
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	after, err := s.daemon.CPU()
	if err != nil {
		return err
	}
	rateColumn, cpuColumn := columns(what)
	t.Add(s.name, rateColumn, rate)
	t.Add(s.name, cpuColumn, float64((after-before).Nanoseconds())/1e3/float64(keys))
	return nil
}

// benchmark has redis-benchmark send n GETs.
func (r *run) benchmark(s *server, conns, n, pipeline int) (rate float64, keys int, err error) {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return 0, 0, err
	}
	cmd := proc.OnCPUs(strconv.Itoa(*client), "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(conns), "-n", strconv.Itoa(n), "-P", strconv.Itoa(pipeline),
		"-r", strconv.Itoa(r.spec.Records), "--csv", "-e", "GET", data.DB+"/key:__rand_int__")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("redis-benchmark: %w: %s", err, stderr.Bytes())
	}
	rows, err := csv.NewReader(bytes.NewReader(lastLine(out))).ReadAll()
	if err != nil || len(rows) != 1 || len(rows[0]) < 2 {
		return 0, 0, fmt.Errorf("redis-benchmark: %q, %w", out, err)
	}
	rate, err = strconv.ParseFloat(rows[0][1], 64)
	return rate, n, err
}

func lastLine(out []byte) []byte {
	out = bytes.TrimSpace(out)
	return out[bytes.LastIndexByte(out, '\n')+1:]
}

// ask sends pipelines and checks one in 64.
func (r *run) ask(s *server, conns int) (rate float64, keys int, err error) {
	l := wire.Load{Addr: s.addr, Conns: conns, Requests: r.pipelines, Parse: r.parse, Check: r.check, Duration: time.Duration(*seconds * float64(time.Second))}
	result, _, err := wire.Measure(l, s.daemon.CPU)
	if err != nil {
		return 0, 0, err
	}
	keys = result.Times.Count() * depth
	return float64(keys) / result.Took.Seconds(), keys, nil
}

// parse parses the answers of a pipeline, in which every value is there.
func (r *run) parse(received []byte) (wire.Reply, int, error) {
	one := len(fmt.Sprintf("$%d\r\n", *value)) + *value + 2
	if len(received) < depth*one {
		return wire.Reply{}, 0, nil
	}
	return wire.Reply{Found: true, Body: received[:depth*one]}, depth * one, nil
}

func (r *run) check(i int, reply wire.Reply) error {
	if i%64 != 0 {
		return nil
	}
	var want []byte
	for _, id := range r.asked[i] {
		want = fmt.Appendf(want, "$%d\r\n%s\r\n", *value, r.spec.Value(nil, id))
	}
	if !bytes.Equal(reply.Body, want) {
		return fmt.Errorf("values that are not those of the records: %.40q", reply.Body)
	}
	return nil
}
