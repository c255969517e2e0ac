package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/table"
	"sequins/bench/internal/wire"
	"sequins/shard"
)

// Rows and columns of the table of cold reads.
const (
	rowAlone = "hot keys alone"
	rowWarm  = "64 others read hot keys"
	rowCold  = "64 others read cold keys"

	others   = "requests/s of the others"
	diskRead = "disk KiB per request of theirs"
)

const (
	hotKeys = 1000
	askers  = 64
	settle  = 2 * time.Second // for hot keys to become it, and for others to begin before and end after
)

// apart is how many records of a partition are between two that are surely not in the same page.
const apart = 40

// scattered returns records, no two of them in the same page: some hot ones, and all others.
func (r *run) scattered() (hot, cold []int) {
	seen := make([]int, *files)
	var key []byte
	for _, id := range r.spec.Order() {
		key = r.spec.Key(key[:0], int(id))
		partition := shard.String.Partition(key, *files)
		if seen[partition]++; seen[partition]%apart == 0 {
			cold = append(cold, int(id))
		}
	}
	return cold[:hotKeys], cold[hotKeys:]
}

// cold measures GETs of a few keys while others, in a process of their own, ask for keys that are on the
// disk alone, or for the same few.
func (r *run) cold() error {
	if err := r.start(); err != nil {
		return err
	}
	t := table.New(fmt.Sprintf("GETs of %d hot keys at %.0f/s, %d records (%s): %s", hotKeys, *rate, r.spec.Records, *codec, r.where()), rowAlone).
		Column(worst, "%.2f", true).Column(usual, "%.2f", true).Column(others, "%.0f", false).Column(diskRead, "%.2f", false).Column(failures, "%.0f", false)
	for _, pace := range []float64{4000, 0} {
		phases := []phase{rowAlone, named(rowWarm, pace), named(rowCold, pace)}
		if err := table.Rounds(r.env.Rounds, phases, func(round int, p phase) error { return r.coldPhase(t, p, pace, round) }); err != nil {
			return err
		}
		cold := named(rowCold, pace).String()
		r.env.Checks.AtMost(fmt.Sprintf("median p99 of hot keys, %s / alone, %s", cold, r.where()), t.Ratio(cold, rowAlone, usual), 2)
		r.env.Checks.Zero("failures of hot keys, "+cold, t.Max(cold, failures))
	}
	t.Note("The others have %d connections: open loop at a rate, or each asking again at once. Before each phase the server is restarted with nothing of its blocks in memory.", askers)
	r.env.Print(t)
	return nil
}

func named(row string, pace float64) phase {
	if pace > 0 {
		return phase(fmt.Sprintf("%s, %.0f/s", row, pace))
	}
	return phase(row + ", as fast as they can")
}

// beside is the load of the other clients: one process, started from this program.
type beside struct {
	Addr   string
	Spec   data.Spec
	Files  int
	Seed   uint64
	Cold   bool
	Rate   float64
	Length time.Duration
}

// coldPhase runs one phase. The other clients, if any, begin before the measured GETs and end after them.
func (r *run) coldPhase(t *table.Table, p phase, pace float64, round int) error {
	if err := r.restartCold(); err != nil {
		return err
	}
	hot, _ := r.scattered()
	requests := r.requests(hot)
	check := func(i int, reply wire.Reply) error { return r.spec.Verify(hot[i], reply.Body, reply.Found, nil) }
	if _, err := r.feel(context.Background(), settle, requests, check); err != nil { // makes them hot
		return err
	}
	var n *neighbours
	length := r.phase + settle
	if p != rowAlone {
		b := beside{Addr: r.daemon.Addr, Spec: r.spec, Files: *files, Seed: uint64(round), Cold: p == named(rowCold, pace), Rate: pace, Length: length}
		var err error
		if n, err = b.start(); err != nil {
			return err
		}
	}
	before, err := r.daemon.Read()
	if err != nil {
		return err
	}
	f, err := r.feel(context.Background(), r.phase, requests, check)
	if err != nil {
		return err
	}
	t.Add(string(p), worst, milliseconds(f.worst))
	t.Add(string(p), usual, milliseconds(f.half))
	t.Add(string(p), failures, float64(f.failures))
	if n == nil {
		return nil
	}
	asked, err := n.wait()
	if err != nil {
		return err
	}
	after, err := r.daemon.Read()
	if err != nil {
		return err
	}
	t.Add(string(p), others, float64(asked)/length.Seconds())
	t.Add(string(p), diskRead, float64(after-before)/1024/float64(asked))
	return nil
}

// restartCold starts the server again while nothing of its blocks is in memory.
func (r *run) restartCold() error {
	if err := r.daemon.Stop(); err != nil {
		return err
	}
	blocks, err := filepath.Glob(filepath.Join(r.dir, "store", "data", data.DB, "*", "*", "*.block"))
	if err != nil {
		return err
	}
	if len(blocks) != *files {
		return fmt.Errorf("%d blocks in the store, want %d", len(blocks), *files)
	}
	if err := proc.Drop(blocks...); err != nil {
		return err
	}
	return r.serve()
}

// neighbours is that process.
type neighbours struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

// start starts the process and waits until it is about to ask.
func (b beside) start() (*neighbours, error) {
	job, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cpus := ""
	if *oneCPU {
		cpus = "1"
	}
	cmd := proc.OnCPUs(cpus, self, "-asker", string(job))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	n := &neighbours{cmd, bufio.NewReader(out)}
	_, err = n.out.ReadString('\n')
	return n, err
}

// wait returns how many answers the process got.
func (n *neighbours) wait() (int, error) {
	line, err := n.out.ReadString('\n')
	if err := errors.Join(err, n.cmd.Wait()); err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// requests are those for cold keys, in random order, or those for hot ones.
func (b beside) requests(r *run) [][]byte {
	hot, cold := r.scattered()
	if !b.Cold {
		return r.requests(hot)
	}
	rand.New(rand.NewPCG(b.Seed, 7)).Shuffle(len(cold), func(i, j int) { cold[i], cold[j] = cold[j], cold[i] })
	return r.requests(cold)
}

// ask is what that process does: it says how many answers it got.
func ask(job string) error {
	var b beside
	if err := json.Unmarshal([]byte(job), &b); err != nil {
		return err
	}
	r := &run{spec: b.Spec}
	*files = b.Files
	requests := b.requests(r)
	fmt.Println("ready")
	result, err := wire.Run(context.Background(), wire.Load{Addr: b.Addr, Conns: askers, Requests: requests, Parse: wire.HTTP, Duration: b.Length, Rate: b.Rate,
		Check: func(i int, reply wire.Reply) error {
			if !reply.Found {
				return errors.New("not found")
			}
			return nil
		}})
	if err == nil && result.Failures > 0 {
		err = result.Failure
	}
	if err != nil {
		return err
	}
	fmt.Println(result.Times.Count())
	os.Exit(0) // without the tables of a parent
	return nil
}
