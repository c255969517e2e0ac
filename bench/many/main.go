// Command many measures what it costs to load many small databases at once, beside one database with the same number of records:
// the time from the start of a node with an empty store until it serves everything, and the processor time of the node and its loads.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
)

var (
	program = flag.String("sequins", "../bin/sequins", "the program under test")
	before  = flag.String("before", "", "another build of it, which is measured in turns with it")
	dbs     = flag.Int("dbs", 100, "small databases")
	records = flag.Int("records", 0, "records of a small database, of 116 bytes (86,000, short 8,600)")
	files   = flag.Int("files", 8, "files of the large database; small ones have one")
	extra   = flag.String("config", "", "more lines of the configuration file")
)

// forgets is the pause after a store was deleted: ext4 does not reuse the inode of a file for 5 s after its deletion, and looks at all of
// these whenever a file is created.
const forgets = 6 * time.Second

// limit is how many times as much as one large database the small ones may cost.
const limit = 1.5

// Columns of the table.
const (
	ready     = "s until all is served"
	processor = "CPU s"
)

func main() { setup.Main(measure) }

// contender is a program with one of the sources.
type contender struct {
	name, program, source string
}

func (c contender) String() string { return c.name }

func measure(env *setup.Env) error {
	n := env.Size(*records, 86_000, 8_600)
	dir := filepath.Join(env.Cache.Dir(), "many.tmp")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	large := data.Input{Spec: data.Spec{Records: n * *dbs, ValueSize: 100, Keys: "hex"}, Files: *files, Format: "plain", Sorted: true}
	small := data.Input{Spec: data.Spec{Records: n, ValueSize: 100, Keys: "hex"}, Files: 1, Format: "plain", Sorted: true}
	all := []contender{{"one of all records", *program, filepath.Join(dir, "large")}, {fmt.Sprintf("%d of %d records", *dbs, n), *program, filepath.Join(dir, "small")}}
	if err := errors.Join(link(env, large, all[0].source, 1), link(env, small, all[1].source, *dbs)); err != nil {
		return err
	}
	if *before != "" {
		all = append(all, contender{"before: one", *before, all[0].source}, contender{"before: many", *before, all[1].source})
	}
	t := table.New(fmt.Sprintf("A node that loads %d records", n**dbs), all[0].name).Column(ready, "%.2f", true).Column(processor, "%.2f", true)
	if err := table.Rounds(env.Rounds, all, func(_ int, c contender) error { return c.load(t, filepath.Join(dir, "store")) }); err != nil {
		return err
	}
	t.Note("Files are in the page cache. CPU is that of the node and its load processes when everything is served.")
	env.Print(t)
	env.Checks.AtMost("time of many / one", t.Ratio(all[1].name, all[0].name, ready), limit)
	env.Checks.AtMost("CPU of many / one", t.Ratio(all[1].name, all[0].name, processor), limit)
	return nil
}

// link makes a source of several databases with the same files.
func link(env *setup.Env, in data.Input, source string, dbs int) error {
	input, err := in.Build(env.Cache)
	if err != nil {
		return err
	}
	for i := range dbs {
		if err := data.Publish(input, filepath.Join(source, fmt.Sprintf("db%04d", i), data.Version)); err != nil {
			return err
		}
	}
	return nil
}

// load starts a node with an empty store, and measures until it serves everything.
func (c contender) load(t *table.Table, store string) error {
	in, err := data.Files(c.source)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(store), proc.Warm(in...)); err != nil {
		return err
	}
	defer os.RemoveAll(store)
	time.Sleep(forgets)
	d, err := daemon.Sequins(c.program, "", c.source, store, "snappy", *extra)
	if err != nil {
		return err
	}
	cpu, err := d.CPU()
	t.Add(c.name, ready, d.Took.Seconds())
	t.Add(c.name, processor, float64(cpu)/float64(time.Second))
	return errors.Join(err, d.Stop())
}
