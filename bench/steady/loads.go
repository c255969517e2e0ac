package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/table"
)

// Rows and columns of the table of loads.
const (
	rowIdle    = "nothing loads"
	rowLoading = "a version loads"
	rowQuiet   = "a version loads, nobody asks"

	worst    = "worst one-second p99 ms"
	usual    = "median one-second p99 ms"
	speed    = "records/s loaded"
	failures = "failures"

	processor = "CPU seconds"
	memory    = "peak MiB"
)

// afterSwitch is how long GETs go on after a switch: the old version is removed then.
const afterSwitch = 3 * time.Second

// phase is a contender: a state of the server.
type phase string

func (p phase) String() string { return string(p) }

// loadPhase is a phase of one of the servers.
type loadPhase struct {
	r   *run
	row string
}

func (p loadPhase) String() string { return p.r.name + p.row }

// compareLoads measures GETs on an idle node and during loads, and loads without requests.
func (r *run) compareLoads() error {
	servers := []*run{r}
	if *before != "" {
		old := *r
		old.name, old.program, old.dir = "before: ", *before, r.dir+".before"
		defer old.stop()
		servers = []*run{&old, r}
	}
	var phases []loadPhase
	for _, s := range servers {
		if err := s.start(); err != nil {
			return err
		}
		for _, row := range []string{rowIdle, rowLoading, rowQuiet} {
			phases = append(phases, loadPhase{s, row})
		}
	}
	t := table.New(fmt.Sprintf("GETs at %.0f/s while %d records load (%s): %s", *rate, r.spec.Records, *codec, r.where()), phases[0].String()).
		Column(worst, "%.2f", true).Column(usual, "%.2f", true).Column(speed, "%.0f", false).Column(processor, "%.2f", false).
		Column(memory, "%.0f", false).Column(failures, "%.0f", false)
	if err := table.Rounds(r.env.Rounds, phases, func(_ int, p loadPhase) error { return p.r.loadPhase(t, p) }); err != nil {
		return err
	}
	r.checkLoads(t)
	t.Note("The worst second of each phase; %v after the switch, when the old version is removed, belong to the load. Memory is what the server and its load have in memory, apart from files, at most.", afterSwitch)
	r.env.Print(t)
	return nil
}

func (r *run) checkLoads(t *table.Table) {
	c := &r.env.Checks
	of := ", " + r.where()
	c.AtMost("worst p99 while loading / worst p99 idle"+of, t.Ratio(rowLoading, rowIdle, worst), 1.6)
	c.AtLeast("speed of a load with GETs / without"+of, t.Ratio(rowLoading, rowQuiet, speed), 0.6)
	c.Zero("failures while loading"+of, t.Max(rowLoading, failures))
	if *before == "" {
		return
	}
	c.AtLeast("speed of a load without GETs / before"+of, t.Ratio(rowQuiet, "before: "+rowQuiet, speed), 0.9)
	c.AtLeast("speed of a load with GETs / before"+of, t.Ratio(rowLoading, "before: "+rowLoading, speed), 0.9)
}

func (r *run) loadPhase(t *table.Table, p loadPhase) error {
	unix.Sync() // what was written before is no burden on this phase
	if err := proc.Populate(2 * r.spec.Size()); err != nil {
		return err
	}
	row := p.String()
	if p.row == rowIdle {
		return r.servePhase(t, p)
	}
	cpu, err := r.daemon.CPU()
	if err != nil {
		return err
	}
	peak := r.daemon.WatchMemory()
	if p.row == rowLoading {
		err = r.servePhase(t, p)
	} else {
		var took time.Duration
		took, err = r.loadQuietly()
		t.Add(row, speed, float64(r.spec.Records)/took.Seconds())
	}
	t.Add(row, memory, float64(peak())/(1<<20))
	if err != nil || p.row == rowLoading {
		return err
	}
	after, err := r.daemon.CPU()
	t.Add(row, processor, (after - cpu).Seconds())
	return err
}

// servePhase measures GETs, while a version loads or not.
func (r *run) servePhase(t *table.Table, p loadPhase) error {
	row := p.String()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var began, ended time.Time
	requests, check := r.keys(200_000, func(version string) {
		if p.row == rowLoading && version == r.version() {
			ended = time.Now()
			time.AfterFunc(afterSwitch, cancel)
		}
	})
	length := r.phase
	if p.row == rowLoading {
		length = 0
		if err := r.publish(); err != nil {
			return err
		}
		began = time.Now()
		if err := r.daemon.Signal(syscall.SIGHUP); err != nil {
			return err
		}
	}
	f, err := r.feel(ctx, length, requests, check)
	if err != nil {
		return err
	}
	t.Add(row, worst, milliseconds(f.worst))
	t.Add(row, usual, milliseconds(f.half))
	t.Add(row, failures, float64(f.failures))
	if p.row == rowLoading {
		t.Add(row, speed, float64(r.spec.Records)/ended.Sub(began).Seconds())
	}
	return nil
}

// loadQuietly loads a version without requests other than 20 a second for the version.
func (r *run) loadQuietly() (time.Duration, error) {
	if err := r.publish(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := r.daemon.Signal(syscall.SIGHUP); err != nil {
		return 0, err
	}
	for time.Since(began) < 10*time.Minute {
		resp, err := http.Get("http://" + r.daemon.Addr + "/" + data.DB + "/" + string(r.spec.Key(nil, 0)))
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		if resp.Header.Get("X-Sequins-Version") == r.version() {
			return time.Since(began), nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0, fmt.Errorf("version %s does not come", r.version())
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func middle(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}
