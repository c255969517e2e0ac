// Package setup contains what the benchmark commands share: their flags, the directory of data
// sets, the line that describes the machine, and the checks.
package setup

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/table"
)

// Env is the environment of a benchmark: its flags and data.
type Env struct {
	Short  bool // small sizes, to see that all of it works; the figures mean nothing
	Rounds int
	Cache  *data.Cache
	Checks table.Checks
}

// Size returns the value of a flag, or where it was not given the size for a full or a short run.
func (e *Env) Size(flagged, full, short int) int {
	switch {
	case flagged > 0:
		return flagged
	case e.Short:
		return short
	}
	return full
}

// Print writes a table to the standard output.
func (e *Env) Print(tables ...*table.Table) {
	for _, t := range tables {
		t.Print(os.Stdout)
	}
}

// Logf reports progress, separate from the results.
func Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, "# "+format+"\n", args...) }

// Stop stops those of some servers that were started.
func Stop(servers ...*daemon.Daemon) {
	for _, d := range servers {
		if d == nil {
			continue
		}
		if err := d.Stop(); err != nil {
			Logf("%v", err)
		}
	}
}

// Main parses the flags, runs a benchmark and prints its checks. It exits with 1 after an error and, if
// -strict is set, after a failed check.
func Main(run func(*Env) error) {
	env := &Env{}
	dir := flag.String("dir", filepath.Join(os.TempDir(), "sequins-bench"), "directory of data sets, kept for the next run")
	limit := flag.Int64("disk", 15_000, "the most MB to keep there")
	strict := flag.Bool("strict", false, "exit with 1 if what must hold does not")
	flag.BoolVar(&env.Short, "short", false, "small sizes, to see that it works")
	flag.IntVar(&env.Rounds, "rounds", 0, "how often each contender has its turn (7, short 3)")
	flag.Parse()
	env.Rounds = env.Size(env.Rounds, 7, 3)
	var err error
	if env.Cache, err = data.NewCache(*dir, *limit*1_000_000, Logf); err == nil {
		err = run(env)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(1)
	}
	env.Checks.Print(os.Stdout)
	fmt.Printf("\n%s\n", proc.Machine())
	if *strict && env.Checks.Missed() > 0 {
		os.Exit(1)
	}
}
