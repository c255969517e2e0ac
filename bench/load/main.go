// Command load measures how SequenceFiles become blocks: processor time, wall time and the most memory for
// each record, beside what it takes to copy the same bytes.
//
// It measures package load in the calling process, without the low priority, the memory limit and the process
// start of a node's load, which bench/steady measures as a whole.
//
// Every measurement runs in its own process, this program started again for one task ([work]), so that the
// kernel's accounting covers only that task. Before each, the input is read into memory, everything
// written is flushed, and memory is allocated and freed, so that earlier work on the disk and in memory
// does not affect the measurement.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
)

var (
	records = flag.Int("records", 0, "records (5,000,000, short 200,000)")
	value   = flag.Int("value", 100, "bytes of a value")
	files   = flag.Int("files", 4, "files, each with one partition")
	memory  = flag.Int("memory", 0, "load.memory in MiB (a quarter of the input at most)")
	only    = flag.String("only", "", "the rows whose names match this regular expression; what has to hold is then not checked")
	profile = flag.String("profile", "", "directory for a processor profile of each load")
	child   = flag.String("child", "", "do this one thing, as JSON describes it (used by the program itself)")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if *child != "" {
			return work(*child)
		}
		r := run{env: env, spec: data.Spec{Records: env.Size(*records, 5_000_000, 200_000), ValueSize: *value, Keys: "hex"}}
		if err := r.spec.Check(); err != nil {
			return err
		}
		r.memory = int64(*memory) << 20
		if r.memory == 0 {
			r.memory = r.spec.Size() / 4
		}
		return r.measure()
	})
}

// run is what the measurements share.
type run struct {
	env    *setup.Env
	spec   data.Spec
	memory int64
}

// task is one row of the table: the work of a child process. Task and Input are also used in the child.
type task struct {
	Task    string // a case of work
	Codec   string // of blocks
	Piece   int    // bytes that a plain copy reads and writes at a time
	Memory  int64  // for sorting, bytes
	Root    string // source
	Out     string // directory to write in
	Profile string // file for a processor profile, if any

	name  string
	input data.Input
	cpus  string
}

func (t *task) String() string { return t.name }

// Columns.
const (
	cpuTime  = "CPU ns/record"
	wallTime = "wall ns/record"
	peak     = "peak MiB"
	written  = "B/record on disk"
)

// The rows that checks are about.
const (
	rowCopy     = "copy 1 MiB at a time, fsync"
	rowSmall    = "4 KiB at a time, as through snappy below"
	rowUsual    = "32 KiB at a time, as io.Copy does"
	rowHuge     = "2 MiB at a time, as blocks are written"
	rowSnappy   = "copy through snappy in 4 KiB pieces, fsync"
	rowBuffered = "through snappy, 256 KiB read and written at a time"
	rowS2       = "same, with the encoder that sequins uses"
	rowOneCPU   = "plain sorted → none, one core"
	rowUnsorted = "plain unsorted → none"
	rowSorted   = "plain sorted → none"
	rowPacked   = "plain sorted → fsst"
)

func (r *run) tasks() []*task {
	input := func(format string, sorted bool) data.Input {
		return data.Input{Spec: r.spec, Files: *files, Format: format, Sorted: sorted}
	}
	sorted := input("plain", true)
	all := []*task{
		{Task: "copy", Piece: 1 << 20, name: rowCopy, input: sorted},
		{Task: "copy", Piece: 4 << 10, name: rowSmall, input: sorted},
		{Task: "copy", Piece: 32 << 10, name: rowUsual, input: sorted},
		{Task: "copy", Piece: 2 << 20, name: rowHuge, input: sorted},
		{Task: "copy snappy", name: rowSnappy, input: sorted},
		{Task: "copy buffered", name: rowBuffered, input: sorted},
		{Task: "copy s2", name: rowS2, input: sorted},
		{Task: "load", Codec: "none", name: rowOneCPU, input: sorted, cpus: "0"},
	}
	for _, in := range []data.Input{sorted, input("plain", false), input("BLOCK snappy", true), input("BLOCK zlib", true), input("RECORD zlib", true)} {
		for _, codec := range []string{"none", "fsst", "zstd"} {
			if in != sorted && codec != "none" && (codec != "fsst" || in.Format != "plain") {
				continue // the codec of the blocks costs the same whatever it came from
			}
			all = append(all, &task{Task: "load", Codec: codec, name: in.String() + " → " + codec, input: in})
		}
	}
	return all
}

func (r *run) measure() error {
	tasks := r.tasks()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, func(t *task) bool { return !pattern.MatchString(t.name) })
	for _, t := range tasks {
		if t.Root, err = t.input.Build(r.env.Cache); err != nil {
			return err
		}
		t.Out = filepath.Join(r.env.Cache.Dir(), "out.tmp")
		t.Memory = r.memory
		if *profile != "" {
			t.Profile = filepath.Join(*profile, t.name+".prof")
		}
	}
	tab := table.New(fmt.Sprintf("Loads: %d records with values of %d bytes, %d files, load.memory %d MiB", r.spec.Records, r.spec.ValueSize, *files, r.memory>>20), rowCopy).
		Column(cpuTime, "%.0f", true).Column(wallTime, "%.0f", true).Column(peak, "%.0f", false).Column(written, "%.1f", false)
	if err := table.Rounds(r.env.Rounds, tasks, func(round int, t *task) error { return r.turn(tab, t, round) }); err != nil {
		return err
	}
	tab.Note("Each turn is a process: CPU is user and system time of it, by wait4; the peak is its VmHWM. The input is in the page cache.")
	if *only == "" {
		r.check(tab)
	}
	r.env.Print(tab)
	return nil
}

func (r *run) check(t *table.Table) {
	c := &r.env.Checks
	if r.spec.RecordSize() == 116 {
		c.AtMost("CPU of "+rowPacked+" / "+rowSnappy, t.Ratio(rowPacked, rowSnappy, cpuTime), 1.1)
		c.AtMost("time of "+rowOneCPU+" / "+rowCopy, t.Ratio(rowOneCPU, rowCopy, wallTime), 2)
		c.AtMost("CPU of "+rowSorted+" / copy, "+rowUsual, t.Ratio(rowSorted, rowUsual, cpuTime), 2)
		c.AtMost("CPU ns that sorting adds to a record", t.Median(rowUnsorted, cpuTime)-t.Median(rowSorted, cpuTime), 500)
	}
	c.AtMost("peak MiB above load.memory, unsorted", t.Max(rowUnsorted, peak)-float64(r.memory>>20), 64)
	c.AtLeast("speed on two cores / on one", t.Ratio(rowOneCPU, rowSorted, wallTime), 1.7)
}

// turn runs a task in a child process, and verifies the result of the first run.
func (r *run) turn(tab *table.Table, t *task, round int) error {
	if err := os.RemoveAll(t.Out); err != nil {
		return err
	}
	defer os.RemoveAll(t.Out)
	in, err := data.Files(t.Root)
	if err != nil {
		return err
	}
	if err := proc.Warm(in...); err != nil {
		return err
	}
	unix.Sync()
	if err := proc.Populate(4 * r.spec.Size()); err != nil {
		return err
	}
	job, err := json.Marshal(t)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := proc.OnCPUs(t.cpus, self, "-child", string(job), "-dir", r.env.Cache.Dir())
	start := time.Now()
	out, err := cmd.Output()
	wall := time.Since(start)
	if err != nil {
		return err
	}
	var most int64 // bytes of memory
	if err := json.Unmarshal(out, &most); err != nil {
		return fmt.Errorf("child said %s: %w", strconv.Quote(string(out)), err)
	}
	size, err := data.DiskUse(t.Out)
	if err != nil {
		return err
	}
	n := float64(r.spec.Records)
	tab.Add(t.name, cpuTime, float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())/n)
	tab.Add(t.name, wallTime, float64(wall)/n)
	tab.Add(t.name, peak, float64(most)/(1<<20))
	tab.Add(t.name, written, float64(size)/n)
	if round > 0 || t.Task != "load" {
		return nil
	}
	return r.verify(t)
}
