package loadproc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"sequins/load"
	"sequins/observe/metrics"
)

const (
	// grace is how long a process may take to exit before it is killed.
	grace = 5 * time.Second
	// silence is how long a process may send nothing. It normally sends several lines a second.
	silence = 5 * time.Minute
	// orderTimeout is how long a write of an order may block.
	orderTimeout = 10 * time.Second
)

// Command is the argument with which the program calls Main.
const Command = "load-worker"

// A Launcher starts load processes. It is safe for concurrent use.
type Launcher struct {
	// Source is passed to Open in the process, as JSON.
	Source any
	// Lock is a file that the processes inherit, see store.Store.LockFile. It may be nil.
	Lock *os.File
	// Metrics counts bytes, records and files read.
	Metrics metrics.Load
	// Program returns the command that calls Main; nil means this program with the argument Command.
	Program func(context.Context) *exec.Cmd
	// Free returns the free bytes of the disk that blocks are written to, if that is known; nil disables checks of the disk.
	Free func() (bytes int64, known bool)

	// Reuse lets a process that has carried out a small load carry out another one. Close must then be called at the end.
	Reuse bool

	spares    spares
	mu        sync.Mutex
	running   map[*Process]bool
	bandwidth float64
	reserve   int64 // see SetReserve
}

// SetBandwidth limits how many bytes per second all processes together read from the source; 0 is unlimited.
// Each process gets an equal share.
func (l *Launcher) SetBandwidth(bytesPerSecond float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bandwidth = bytesPerSecond
	l.divide()
}

// divide sends all processes their share of the bandwidth. l.mu is held.
func (l *Launcher) divide() {
	for p := range l.running {
		if share := l.share(len(l.running)); share != p.share {
			p.share = share
			_ = p.order(order{Bandwidth: &share})
		}
	}
}

func (l *Launcher) share(processes int) float64 { return l.bandwidth / float64(max(1, processes)) }

// Start starts a process that plans a load. The process is told to exit when ctx ends. The caller must close
// it. An error wraps load.ErrDied or is that of ctx.
func (l *Launcher) Start(ctx context.Context, job Job) (*Process, error) {
	var err error
	if job.Source, err = json.Marshal(l.Source); err != nil {
		return nil, fmt.Errorf("the source of a load process: %w", err)
	}
	p, err := l.begin(ctx, job)
	if ctx.Err() != nil && err != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be started: %w", load.ErrDied, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = make(map[*Process]bool)
	}
	l.running[p] = true
	l.divide()
	return p, nil
}

// begin sends the job to a process that has ended another one, or to a new one.
func (l *Launcher) begin(ctx context.Context, job Job) (*Process, error) {
	l.mu.Lock()
	job.Bandwidth = l.share(len(l.running) + 1)
	l.mu.Unlock()
	if c := l.spares.take(job.MemoryLimit); c != nil {
		if c.order(order{Job: &job}) == nil {
			p := l.process(ctx, job, c)
			p.share = job.Bandwidth
			return p, nil
		}
		c.end() // it has died
	}
	p, err := l.start(ctx, job)
	if err == nil {
		p.share = job.Bandwidth
		_ = p.order(order{Job: &job}) // if that fails, the process has ended, which Plan reports
	}
	return p, err
}

// start returns a process that has been sent nothing of the job.
func (l *Launcher) start(ctx context.Context, job Job) (*Process, error) {
	c, err := l.newChild(job.MemoryLimit)
	if err != nil {
		return nil, err
	}
	return l.process(ctx, job, c), nil
}

// process returns c as the process of a job. It is told to exit when ctx ends.
func (l *Launcher) process(ctx context.Context, job Job, c *child) *Process {
	return &Process{child: c, launcher: l, db: job.DB, input: job.Input, memory: cmp.Or(job.Options.Memory, load.DefaultMemory),
		parent: ctx, detach: context.AfterFunc(ctx, c.cancel), silence: silence}
}

// Close ends the processes that wait for another load.
func (l *Launcher) Close() { l.spares.close() }

// ended removes a process from those that share the bandwidth.
func (l *Launcher) ended(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, p)
	l.divide()
}
