// Command drill measures how events in the life of a cluster affect its clients: a rolling restart, a node that is
// killed, an upgrade, and a start of all nodes without the source.
//
// Three nodes run with a real ZooKeeper and hold every partition twice. GETs are due at a steady rate; the client
// sends each once, to one of the nodes whose /readyz is 200, like a load balancer. It checks all values, and that no
// node returns to an older version.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sequins/bench/internal/data"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
	"sequins/test/balance"
	"sequins/test/harness"
)

var (
	program = flag.String("sequins", "../bin/sequins", "the program under test")
	against = flag.String("against", "", "another build of it, measured in turns")
	repo    = flag.String("repo", "..", "the repository, which has ZooKeeper for tests")
	records = flag.Int("records", 0, "records of a version (300,000, short 20,000)")
	rate    = flag.Float64("rate", 1000, "GETs a second")
	probe   = flag.Duration("probe", 100*time.Millisecond, "between two looks at a node's /readyz")
	delay   = flag.Duration("delay", 2*time.Second, "shutdown_delay of the nodes, if the program has it")
)

// files is how many partitions a version has.
const files = 12

// contender is a program.
type contender struct{ name, path string }

func (c contender) String() string { return c.name }

func main() {
	setup.Main(func(env *setup.Env) (err error) {
		contenders, err := programs()
		if err != nil {
			return err
		}
		in := data.Input{Spec: data.Spec{Records: env.Size(*records, 300_000, 20_000), ValueSize: 100, Keys: "hex"}, Files: files, Format: "plain", Sorted: true}
		b := &bench{env: env, spec: in.Spec, dir: filepath.Join(env.Cache.Dir(), "drill.tmp")}
		if b.input, err = in.Build(env.Cache); err != nil {
			return err
		}
		if err := os.RemoveAll(b.dir); err != nil {
			return err
		}
		defer os.RemoveAll(b.dir)
		if err := b.openZooKeeper(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.harness.Close()) }()
		return b.measure(contenders)
	})
}

// programs are the contenders. Their paths are absolute: the directory changes to the repository.
func programs() ([]contender, error) {
	all := []contender{{"sequins", *program}}
	if *against != "" {
		all = append(all, contender{"against", *against})
	}
	for i := range all {
		path, err := filepath.Abs(all[i].path)
		if err != nil {
			return nil, err
		}
		all[i].path = path
	}
	return all, nil
}

// bench is what all drills share.
type bench struct {
	env       *setup.Env
	spec      data.Spec
	input     string // source directory of the data set
	dir       string
	harness   *harness.Harness
	zookeeper string // host:port
	clusters  int    // that have been made
	tables    map[string]*table.Table
}

func (b *bench) openZooKeeper() (err error) {
	root := filepath.Join(b.dir, "harness")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := os.Chdir(*repo); err != nil {
		return err
	}
	if b.harness, err = harness.Open(root); err != nil {
		return err
	}
	reply, err := b.harness.Try("zk start n=1")
	if err != nil {
		return errors.Join(err, b.harness.Close())
	}
	b.zookeeper = reply["connect"]
	return nil
}

// The columns.
const (
	requests    = "requests"
	failures    = "failed"
	connections = "no answer"
	statuses    = "5xx"
	noneReady   = "no node ready"
	p99         = "p99 ms"
	stall       = "longest stall ms"
)

func (b *bench) measure(contenders []contender) error {
	b.tables = map[string]*table.Table{}
	for _, d := range drills {
		t := table.New(fmt.Sprintf("%s, %.0f GETs/s, %v", strings.ToUpper(d.name[:1])+d.name[1:], *rate, b.spec), "")
		for _, column := range []string{requests, failures, connections, statuses, noneReady} {
			t.Column(column, "%.0f", false)
		}
		b.tables[d.name] = t.Column(p99, "%.1f", false).Column(stall, "%.0f", false)
	}
	if err := table.Rounds(b.env.Rounds, contenders, func(_ int, c contender) error { return b.round(c) }); err != nil {
		return err
	}
	for _, d := range drills {
		b.env.Print(b.tables[d.name])
	}
	for _, name := range []string{rolling, upgrade} {
		b.env.Checks.Zero("failed requests, "+name, b.tables[name].Max(contenders[0].name, failures))
	}
	b.env.Checks.AtMost("longest stall ms, "+rolling, b.tables[rolling].Max(contenders[0].name, stall), 100)
	return nil
}

// round has a new cluster of a program go through all drills.
func (b *bench) round(p contender) (err error) {
	c, err := b.newCluster(p.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.begin(); err != nil {
		return err
	}
	for _, d := range drills {
		s, err := c.perform(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		b.enter(b.tables[d.name], p.name, s)
		setup.Logf("%v: %s: %+v", p, d.name, s)
		if s.Wrong > 0 {
			return fmt.Errorf("%s: %d wrong answers, the first: %w", d.name, s.Wrong, s.First)
		}
	}
	return nil
}

func (b *bench) enter(t *table.Table, row string, s balance.Summary) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	t.Add(row, requests, float64(s.Requests))
	t.Add(row, failures, float64(s.Failures()))
	t.Add(row, connections, float64(s.Connections))
	t.Add(row, statuses, float64(s.Statuses))
	t.Add(row, noneReady, float64(s.NoneReady))
	t.Add(row, p99, ms(s.P99))
	t.Add(row, stall, ms(s.Longest))
}
