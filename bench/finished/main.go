// Command finished measures loads of finished blocks beside what a copy of the same files takes: cp, sync and
// sha256sum, which is the least that leaves verified files on the disk. A load of the version that the blocks were built
// from is beside them.
//
// Every turn is a process of its own. The input is in the page cache, and the disk is idle, before each.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"time"

	"golang.org/x/sys/unix"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
	"sequins/blocks"
	"sequins/input/finished"
	"sequins/load"
	"sequins/load/build"
	"sequins/source/local"
	"sequins/test/speed"
)

var (
	records = flag.Int("records", 0, "records (5,000,000, short 200,000)")
	value   = flag.Int("value", 100, "bytes of a value")
	files   = flag.Int("files", 8, "partitions")
	profile = flag.String("profile", "", "file for a processor profile of a load of finished blocks")
	child   = flag.String("child", "", "load this source into this store: SOURCE,STORE as JSON (used by the program itself)")
)

const (
	rowCopy  = "cp, sync and sha256sum"
	rowPlain = "cp and sync alone"
	rowBuilt = "load of finished blocks"
	rowLoad  = "load of the input"

	rate     = "MB/s of blocks"
	wallTime = "seconds"
	cpuTime  = "CPU seconds"
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if *child != "" {
			return load1(*child)
		}
		spec := data.Spec{Records: env.Size(*records, 5_000_000, 200_000), ValueSize: *value, Keys: "hex"}
		if err := spec.Check(); err != nil {
			return err
		}
		r := run{env: env, spec: spec, out: filepath.Join(env.Cache.Dir(), "out.tmp")}
		return r.measure()
	})
}

type run struct {
	env         *setup.Env
	spec        data.Spec
	input, from string // sources: of the input, and of the finished blocks
	out         string // directory to write in
	size        int64  // of the blocks
}

type contender string

func (c contender) String() string { return string(c) }

func (r *run) measure() (err error) {
	if r.input, err = (data.Input{Spec: r.spec, Files: *files, Format: "plain", Sorted: true}).Build(r.env.Cache); err != nil {
		return err
	}
	r.from, err = r.env.Cache.Get(fmt.Sprintf("finished%d-%v-%d", finished.Format, r.spec, *files), 2*r.spec.Size(), r.build)
	if err != nil {
		return err
	}
	if r.size, err = data.DiskUse(r.from); err != nil {
		return err
	}
	tab := table.New(fmt.Sprintf("Finished blocks: %d MB in %d files", r.size/1e6, *files), rowCopy).
		Column(rate, "%.0f", false).Column(wallTime, "%.2f", true).Column(cpuTime, "%.2f", true)
	rows := []contender{rowCopy, rowPlain, rowBuilt, rowLoad}
	if err := table.Rounds(r.env.Rounds, rows, func(_ int, c contender) error { return r.turn(tab, c) }); err != nil {
		return err
	}
	tab.Note("cp, sync FILE… and sha256sum FILE… run one after another. The times are those of processes, with their start.")
	r.env.Checks.AtLeast("rate of "+rowBuilt+" / "+rowCopy, tab.Ratio(rowCopy, rowBuilt, wallTime), 0.9)
	r.env.Print(tab)
	return nil
}

// build builds the finished blocks.
func (r *run) build(path string) error {
	from, err := local.New(r.input)
	if err != nil {
		return err
	}
	_, err = build.Run(context.Background(), build.Job{
		From:    build.Place{Source: from, DB: data.DB, Version: data.Version},
		To:      filepath.Join(path, data.DB, data.Version),
		Options: load.Options{Compression: blocks.FSST}, Release: "bench",
	}, nil)
	return err
}

// turn measures one contender.
func (r *run) turn(tab *table.Table, c contender) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	defer os.RemoveAll(r.out)
	cmd, err := r.command(c)
	if err != nil {
		return err
	}
	unix.Sync()
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	wall := time.Since(start).Seconds()
	tab.Add(string(c), rate, float64(r.size)/1e6/wall)
	tab.Add(string(c), wallTime, wall)
	tab.Add(string(c), cpuTime, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	return nil
}

// command prepares the process of a contender, with its input in the page cache.
func (r *run) command(c contender) (*exec.Cmd, error) {
	from := r.from
	if c == rowLoad {
		from = r.input
	}
	in, err := data.Files(from)
	if err != nil {
		return nil, err
	}
	if err := proc.Warm(in...); err != nil {
		return nil, err
	}
	if c == rowCopy || c == rowPlain {
		script := `mkdir -p "$1" && cp "${@:2}" "$1" && sync "$1"/*`
		if c == rowCopy {
			script += ` && sha256sum "$1"/* > /dev/null`
		}
		return exec.Command("bash", append([]string{"-c", script, "-", r.out}, in...)...), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	job, err := json.Marshal([]string{from, r.out})
	if err != nil {
		return nil, err
	}
	args := []string{"-child", string(job), "-dir", r.env.Cache.Dir()}
	if c == rowBuilt {
		args = append(args, "-profile", *profile)
	}
	return exec.Command(self, args...), nil
}

// load1 loads all partitions of a version into a store, as a node does.
func load1(job string) error {
	var dirs [2]string
	if err := json.Unmarshal([]byte(job), &dirs); err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	src, err := local.New(dirs[0])
	if err != nil {
		return err
	}
	return speed.LoadAll(context.Background(), load.New(src, nil, load.Options{Compression: blocks.FSST}), dirs[1], data.DB, data.Version)
}
