// Command sources measures how fast one large object of S3 is read and loaded where each connection is slow,
// beside one stream, and how much memory that takes.
//
// The server is a real one (versitygw) on loopback. Before it stands this program, which lets 20 MB a second
// through each connection. Every measurement is a process of its own, this program started again to do one
// thing, so that its peak of memory is that of this thing alone.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
	"sequins/test/gateway"
)

var (
	size  = flag.Int("size", 0, "MiB of the object (1024, short 64)")
	each  = flag.Int("rate", 20, "MB a second that a connection lets through")
	child = flag.String("child", "", "do this one thing, as JSON describes it (used by the program itself)")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if *child != "" {
			return work(*child)
		}
		return measure(env)
	})
}

// task is one row of the table: the work of a child process.
type task struct {
	Name     string
	Endpoint string
	Size     int64  // of the object
	Out      string // directory of the store
}

func (t *task) String() string { return t.Name }

// outcome is the report of a child process.
type outcome struct {
	Seconds float64
	Peak    int64 // bytes of memory
}

// The rows, and the columns.
const (
	rowStream = "one stream"
	rowRead   = "read"
	rowLoad   = "load"

	rateColumn = "MB/s"
	peakColumn = "peak MiB"
)

const key = data.DB + "/" + data.Version + "/part-r-00000"

func measure(env *setup.Env) (err error) {
	spec := data.Spec{ValueSize: 1000, Keys: "user"}
	spec.Records = env.Size(*size, 1024, 64) << 20 / spec.RecordSize()
	if err := spec.Check(); err != nil {
		return err
	}
	root, err := data.Input{Spec: spec, Files: 1, Format: "plain", Sorted: true}.Build(env.Cache)
	if err != nil {
		return err
	}
	objects := filepath.Join(env.Cache.Dir(), "objects.tmp")
	if err := errors.Join(os.RemoveAll(objects), os.MkdirAll(objects, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(objects)
	setup.Logf("a gateway and its object")
	g, err := gateway.Run(context.Background(), objects)
	if err != nil {
		return err
	}
	defer g.Kill()
	file := filepath.Join(root, key)
	if err := g.PutFile(context.Background(), key, file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	slow, err := newSlow(g.Addr, *each*1_000_000)
	if err != nil {
		return err
	}
	defer slow.Close()
	var tasks []*task
	for _, name := range []string{rowStream, rowRead, rowLoad} {
		tasks = append(tasks, &task{Name: name, Endpoint: slow.endpoint(), Size: info.Size(), Out: filepath.Join(env.Cache.Dir(), "out.tmp")})
	}
	title := fmt.Sprintf("S3: an object of %d MiB over connections of %d MB/s each", info.Size()>>20, *each)
	tab := table.New(title, rowStream).Column(rateColumn, "%.1f", true).Column(peakColumn, "%.0f", false)
	// A stream takes a minute, and is always the same.
	if err := table.Rounds(min(env.Rounds, 3), tasks, func(_ int, t *task) error { return turn(tab, t) }); err != nil {
		return err
	}
	env.Checks.AtLeast("speed of a read / of one stream", tab.Ratio(rowRead, rowStream, rateColumn), 5)
	env.Checks.AtLeast("speed of a load / of one stream", tab.Ratio(rowLoad, rowStream, rateColumn), 5)
	env.Checks.AtMost("peak MiB of a read", tab.Max(rowRead, peakColumn), 160)
	env.Print(tab)
	return nil
}

// turn runs a task in a child process.
func turn(tab *table.Table, t *task) error {
	if err := os.RemoveAll(t.Out); err != nil {
		return err
	}
	defer os.RemoveAll(t.Out)
	job, err := json.Marshal(t)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	start := time.Now()
	out, err := proc.OnCPUs("", self, "-child", string(job)).Output()
	if err != nil {
		return err
	}
	var got outcome
	if err := json.Unmarshal(out, &got); err != nil {
		return fmt.Errorf("child said %q: %w", out, err)
	}
	setup.Logf("%s: %v", t, time.Since(start).Round(time.Millisecond))
	tab.Add(t.Name, rateColumn, float64(t.Size)/1e6/got.Seconds)
	tab.Add(t.Name, peakColumn, float64(got.Peak)/(1<<20))
	return nil
}
