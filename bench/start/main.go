// Command start measures how long a node takes from its start until it serves what is in its store.
//
// The store has many small blocks. The source is there, so that the node also lists it and finds nothing new.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
)

var (
	program    = flag.String("sequins", "../bin/sequins", "the program under test")
	before     = flag.String("before", "", "another build of it, which is measured in turns with it")
	dbs        = flag.Int("dbs", 1, "databases")
	partitions = flag.Int("partitions", 0, "partitions of each database (10,000, short 500)")
	records    = flag.Int("records", 20, "records of a partition, about")
)

// Columns of the table.
const (
	ready     = "ms to ready"
	processor = "CPU ms"
)

func main() { setup.Main(measure) }

// server is one of the programs, with its own store.
type server struct {
	name, program, store string
}

func (s server) String() string { return s.name }

func measure(env *setup.Env) error {
	n := env.Size(*partitions, 10_000, 500)
	in := data.Input{Spec: data.Spec{Records: n * *records, ValueSize: 100, Keys: "hex"}, Files: n, Format: "plain", Sorted: true}
	input, err := in.Build(env.Cache)
	if err != nil {
		return err
	}
	dir := filepath.Join(env.Cache.Dir(), "start.tmp")
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "source")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for i := range *dbs {
		if err := data.Publish(input, filepath.Join(source, name(i), data.Version)); err != nil {
			return err
		}
	}
	servers := []server{{"now", *program, filepath.Join(dir, "now")}}
	if *before != "" {
		servers = append(servers, server{"before", *before, filepath.Join(dir, "before")})
	}
	for _, s := range servers {
		setup.Logf("%s loads", s)
		if _, _, err := s.start(source, in.Spec); err != nil {
			return err
		}
	}
	t := table.New(fmt.Sprintf("From exec to ready with %d databases of %d blocks", *dbs, n), servers[len(servers)-1].name).
		Column(ready, "%.0f", true).Column(processor, "%.0f", true)
	err = table.Rounds(env.Rounds, servers, func(_ int, s server) error {
		took, cpu, err := s.start(source, in.Spec)
		t.Add(s.name, ready, float64(took.Microseconds())/1e3)
		t.Add(s.name, processor, float64(cpu.Milliseconds()))
		return err
	})
	t.Note("Files are in the page cache. CPU is what the node has used when it is ready.")
	env.Print(t)
	return err
}

func name(i int) string { return fmt.Sprintf("db%04d", i) }

// start starts the server, and returns how long it took until it was ready, and the processor time until then. It asks
// each database for some keys and ends the server.
func (s server) start(source string, spec data.Spec) (took, cpu time.Duration, err error) {
	d, err := daemon.Sequins(s.program, "", source, s.store, "snappy", "")
	if err != nil {
		return 0, 0, err
	}
	took = d.Took
	cpu, err = d.CPU()
	return took, cpu, errors.Join(err, s.ask(d.Addr, spec), d.Stop())
}

// ask asks each database for some keys of different partitions.
func (s server) ask(addr string, spec data.Spec) error {
	for db := range *dbs {
		for i := range 10 {
			id := (db + i*7919) % spec.Records
			url := "http://" + addr + "/" + name(db) + "/" + string(spec.Key(nil, id))
			resp, err := http.Get(url)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("GET %s: %s", url, resp.Status)
			}
		}
	}
	return nil
}
