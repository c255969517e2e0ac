// Command scan measures ordered reads: GET /<db>?start= of a whole database by one client over one connection, from a
// node that holds all of it, with the data in the page cache.
//
// The client reads the answer and throws it away; it looks only at its end, which has the number of records.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
)

var (
	program = flag.String("sequins", "../bin/sequins", "the program under test")
	records = flag.Int("records", 0, "records (1,000,000, short 50,000)")
	codec   = flag.String("compression", "none", "of blocks")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		for _, size := range []int{100, 1000} {
			for _, files := range []int{1, 8, 64} {
				r := &run{env: env, files: files, spec: data.Spec{Records: env.Size(*records, 1_000_000, 50_000), ValueSize: size, Keys: "user"}}
				if err := r.measure(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// run is the measurement of one database.
type run struct {
	env    *setup.Env
	files  int
	spec   data.Spec
	daemon *daemon.Daemon
}

// format is how a range is asked for. last is what its answer ends with.
type format struct {
	name, query, accept string
	last                func(records int) string
}

func (f format) String() string { return f.name }

var formats = []format{
	{"octet-stream", "start=", "application/octet-stream", func(int) string { return "\xff\xff\xff\xff\x00\x00\x00\x00" }},
	{"NDJSON", "start=", "*/*", func(n int) string { return `"records":` + strconv.Itoa(n) + `,"cursor":null}` + "\n" }},
	{"octet-stream, keys_only", "start=&keys_only", "application/octet-stream", func(int) string { return "\xff\xff\xff\xff\x00\x00\x00\x00" }},
	{"count of a range", "count&prefix=u", "*/*", func(n int) string { return `"count":` + strconv.Itoa(n) + "}\n" }},
}

const (
	perSecond = "million records/s"
	valueRate = "GB/s of values"
	memory    = "most memory, MB"
	cpuTime   = "CPU of the server, ns/record"
)

func (r *run) measure() (err error) {
	source, err := data.Input{Spec: r.spec, Files: r.files, Format: "plain", Sorted: true}.Build(r.env.Cache)
	if err != nil {
		return err
	}
	store := filepath.Join(r.env.Cache.Dir(), fmt.Sprintf("scan %d %d.tmp", r.spec.ValueSize, r.files))
	if r.daemon, err = daemon.Sequins(*program, "", source, store, *codec, ""); err != nil {
		return err
	}
	defer r.daemon.Stop() //nolint:errcheck // the figures are there
	t := table.New(fmt.Sprintf("Ordered read of %v, %d partitions", r.spec, r.files), "").
		Column(perSecond, "%.2f", false).Column(valueRate, "%.2f", false).Column(cpuTime, "%.0f", false).Column(memory, "%.0f", false)
	if err := table.Rounds(r.env.Rounds, formats, func(_ int, f format) error { return r.turn(t, f) }); err != nil {
		return err
	}
	for _, f := range formats[:2] {
		what := fmt.Sprintf("%s, %d bytes, %d partitions", f, r.spec.ValueSize, r.files)
		if r.spec.ValueSize < 500 {
			r.env.Checks.AtLeast(perSecond+": "+what, t.Median(f.name, perSecond), 3)
		} else {
			r.env.Checks.AtLeast(valueRate+": "+what, t.Median(f.name, valueRate), 1)
		}
		r.env.Checks.AtMost(memory+": "+what, t.Max(f.name, memory), 150)
	}
	r.env.Print(t)
	return nil
}

// turn reads everything once.
func (r *run) turn(t *table.Table, f format) error {
	before, err := r.daemon.CPU()
	if err != nil {
		return err
	}
	peak := r.daemon.WatchMemory()
	began := time.Now()
	err = r.read(f)
	took := time.Since(began).Seconds()
	t.Add(f.name, memory, float64(peak())/1e6)
	if err != nil {
		return err
	}
	after, err := r.daemon.CPU()
	if err != nil {
		return err
	}
	t.Add(f.name, cpuTime, float64((after-before).Nanoseconds())/float64(r.spec.Records))
	t.Add(f.name, perSecond, float64(r.spec.Records)/took/1e6)
	if f.name == "octet-stream" || f.name == "NDJSON" {
		t.Add(f.name, valueRate, float64(r.spec.Records)*float64(r.spec.ValueSize)/took/1e9)
	}
	return nil
}

// read sends a request and reads its answer up to the end of the connection.
func (r *run) read(f format) error {
	c, err := net.Dial("tcp", r.daemon.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "GET /%s?%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: %s\r\n\r\n", data.DB, f.query, f.accept); err != nil {
		return err
	}
	buf := make([]byte, 256<<10)
	var tail []byte
	for {
		n, err := c.Read(buf)
		if tail = append(tail, buf[:n]...); len(tail) > 512 {
			tail = append(tail[:0], tail[len(tail)-256:]...)
		}
		if err != nil {
			break
		}
	}
	if want := f.last(r.spec.Records); !bytes.Contains(tail, []byte(want)) {
		return fmt.Errorf("%s: the answer ends with %q, without %q", f, tail, want)
	}
	return nil
}
