// Command batch compares the cost of a key in a request for a hundred keys with that of a key in its own request, and
// with MGET of redis.
//
// Two nodes run, each only the HTTP server of sequins: the holder has both partitions of a version, the asker has one
// and requests the other from the holder. All servers run on one processor; the client on the other sends requests to
// them in turn and checks every answer. CPU is that of the servers, from the kernel's accounting.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
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
	size    = flag.Int("keys", 100, "keys of a batch")
	conns   = flag.Int("conns", 16, "connections")
	seconds = flag.Float64("seconds", 1, "length of a turn")
	cpu     = flag.String("cpu", "0", "the processors of the servers")
	client  = flag.Int("client", 1, "the processor of the client")
	profile = flag.String("profile", "", "file for a processor profile of the holder, taken in an additional turn of batches at the end")
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
		defer func() { setup.Stop(r.daemons...) }()
		if err := r.start(); err != nil {
			return err
		}
		if err := r.measure(); err != nil || *profile == "" {
			return err
		}
		s := r.contenders[1]
		return wire.Profile(wire.Load{Addr: s.addr, Conns: *conns, Requests: s.requests, Parse: s.parse, Check: s.check}, r.debug, *profile)
	})
}

type run struct {
	env        *setup.Env
	spec       data.Spec
	debug      string
	daemons    []*daemon.Daemon
	batches    [][]int // numbers of records
	contenders []*contender
}

// contender is one way to ask.
type contender struct {
	name     string
	addr     string
	keys     int // of a request
	requests [][]byte
	parse    wire.Parser
	check    func(int, wire.Reply) error
}

func (c *contender) String() string { return c.name }

func (r *run) start() error {
	var paths []string
	for p := range 2 {
		path, err := r.env.Cache.Fresh(fmt.Sprintf("%v batch %d", r.spec, p), r.spec.Size()*5/8+1<<20, func(path string) error {
			return r.spec.WriteBlock(path, blocks.WriterOptions{Partition: p, Partitions: 2, BlockSize: 4096, Compression: blocks.FSST, TempDir: r.env.Cache.Dir()})
		})
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	var err error
	if r.debug, err = ports.Free(); err != nil {
		return err
	}
	holder, err := r.add(node.Node{Partitions: 2, Blocks: paths, Debug: r.debug}.Start(*cpu))
	if err != nil {
		return err
	}
	asker, err := r.add(node.Node{Partitions: 2, Blocks: paths[:1], Peer: holder.Addr}.Start(*cpu))
	if err != nil {
		return err
	}
	redis, err := r.add(daemon.Redis(*cpu))
	if err != nil {
		return err
	}
	setup.Logf("filling redis")
	if err := wire.FillRedis(redis.Addr, r.spec, r.spec.Key); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range min(r.spec.Records / *size, 10_000) {
		ids := make([]int, *size)
		for i := range ids {
			ids[i] = rng.IntN(r.spec.Records)
		}
		r.batches = append(r.batches, ids)
	}
	r.contend(holder.Addr, asker.Addr, redis.Addr)
	return nil
}

func (r *run) add(d *daemon.Daemon, err error) (*daemon.Daemon, error) {
	if err == nil {
		r.daemons = append(r.daemons, d)
	}
	return d, err
}

// The rows of the table.
const (
	singles     = "GETs"
	batched     = "batches, JSON"
	inBytes     = "batches, bytes"
	halfSingles = "GETs, half proxied"
	halfBatched = "batches, JSON, half proxied"
	redisMGET   = "redis MGET"
)

func (r *run) contend(holder, asker, redis string) {
	var ids []int
	var gets, posts, binaries, mgets [][]byte
	for _, batch := range r.batches {
		json, bin, mget := []byte(`{"keys":[`), []byte(nil), fmt.Appendf(nil, "*%d\r\n$4\r\nMGET\r\n", len(batch)+1)
		for i, id := range batch {
			key := r.spec.Key(nil, id)
			if i > 0 {
				json = append(json, ',')
			}
			json = strconv.AppendQuote(json, string(key))
			bin = append(binary.BigEndian.AppendUint32(bin, uint32(len(key))), key...)
			mget = fmt.Appendf(mget, "$%d\r\n%s\r\n", len(key), key)
			if len(ids) < 100_000 {
				ids, gets = append(ids, id), append(gets, wire.Get("/"+data.DB+"/"+string(key)))
			}
		}
		posts = append(posts, post(append(json, "]}"...), "application/json"))
		binaries = append(binaries, post(bin, "application/octet-stream"))
		mgets = append(mgets, mget)
	}
	single := wire.Present(r.spec, ids)
	r.contenders = []*contender{
		{singles, holder, 1, gets, wire.HTTP, single},
		{batched, holder, *size, posts, wire.HTTP, r.checkJSON},
		{inBytes, holder, *size, binaries, wire.HTTP, r.checkBytes},
		{halfSingles, asker, 1, gets, wire.HTTP, single},
		{halfBatched, asker, *size, posts, wire.HTTP, r.checkJSON},
		{redisMGET, redis, *size, mgets, parseMGET, r.checkMGET},
	}
}

func post(body []byte, media string) []byte {
	return fmt.Appendf(nil, "POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nAccept: %s\r\nContent-Length: %d\r\n\r\n%s", data.DB, media, media, len(body), body)
}

// perKey is a column.
const perKey = "CPU µs/key"

func (r *run) measure() error {
	t := table.New(fmt.Sprintf("Batches of %d keys, %d connections, %v", *size, *conns, r.spec), singles).
		Column(wire.PerSecond, "%.0f", true).Column(wire.CPUTime, "%.2f", true).Column(perKey, "%.3f", true).Column(wire.Half, "%.0f", false).Column(wire.Most, "%.0f", false)
	err := table.Rounds(r.env.Rounds, r.contenders, func(_ int, s *contender) error {
		l := wire.Load{Addr: s.addr, Conns: *conns, Requests: s.requests, Parse: s.parse, Check: s.check, Duration: time.Duration(*seconds * float64(time.Second))}
		result, used, err := wire.Measure(l, r.cpu)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		wire.Enter(t, s.name, result, used)
		t.Add(s.name, perKey, float64(used.Nanoseconds())/1e3/float64(result.Times.Count()*s.keys))
		return nil
	})
	if err != nil {
		return err
	}
	c := &r.env.Checks
	c.AtMost("CPU of a key of a batch in bytes / of a GET", t.Ratio(inBytes, singles, perKey), 1.0/15)
	c.AtMost("CPU of a key of a batch in JSON / of a GET", t.Ratio(batched, singles, perKey), 1.0/15)
	c.AtMost("CPU of a key of a batch in JSON / of a GET, half proxied", t.Ratio(halfBatched, halfSingles, perKey), 1.0/10)
	r.env.Print(t)
	return nil
}

// cpu is the processor time of all servers; those without requests use none.
func (r *run) cpu() (sum time.Duration, err error) {
	for _, d := range r.daemons {
		t, e := d.CPU()
		sum, err = sum+t, errors.Join(err, e)
	}
	return sum, err
}

// checkJSON checks the length of an answer, and one in 64 whole.
func (r *run) checkJSON(i int, reply wire.Reply) error {
	if !reply.Found {
		return errors.New("not found")
	}
	if i%64 != 0 {
		return nil
	}
	want := []byte(`{"version":"` + data.Version + `","values":[`)
	for j, id := range r.batches[i] {
		if j > 0 {
			want = append(want, ',')
		}
		want = append(strconv.AppendQuote(append(want, `{"value":`...), string(r.spec.Value(nil, id))), '}')
	}
	return same(reply.Body, append(want, "]}\n"...))
}

func (r *run) checkBytes(i int, reply wire.Reply) error {
	if len(reply.Body) != *size*(4+*value) {
		return fmt.Errorf("%d bytes", len(reply.Body))
	}
	if i%64 != 0 {
		return nil
	}
	var want []byte
	for _, id := range r.batches[i] {
		want = append(binary.BigEndian.AppendUint32(want, uint32(*value)), r.spec.Value(nil, id)...)
	}
	return same(reply.Body, want)
}

func (r *run) checkMGET(i int, reply wire.Reply) error {
	if i%64 != 0 {
		return nil
	}
	want := fmt.Appendf(nil, "*%d\r\n", *size)
	for _, id := range r.batches[i] {
		want = fmt.Appendf(want, "$%d\r\n%s\r\n", *value, r.spec.Value(nil, id))
	}
	return same(reply.Body, want)
}

func same(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes that are not the %d of the records", len(got), len(want))
	}
	return nil
}

// parseMGET parses an answer in which every value is there.
func parseMGET(received []byte) (wire.Reply, int, error) {
	head := fmt.Sprintf("*%d\r\n", *size)
	if len(received) < len(head) {
		return wire.Reply{}, 0, nil
	}
	if string(received[:len(head)]) != head {
		return wire.Reply{}, 0, fmt.Errorf("answer %.40q", received)
	}
	whole := len(head) + *size*len(fmt.Sprintf("$%d\r\n%*s\r\n", *value, *value, ""))
	if len(received) < whole {
		return wire.Reply{}, 0, nil
	}
	return wire.Reply{Found: true, Body: received[:whole]}, whole, nil
}
