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
	// Metrics counts bytes, records and files read.
	Metrics metrics.Load
	// Program returns the command that calls Main; nil means this program with the argument Command.
	Program func(context.Context) *exec.Cmd
	// Free returns the free bytes of the disk that blocks are written to, if that is known.
	Free func() (bytes int64, known bool)

	allowing sync.Mutex // held while the disk is measured to allow a process to write

	mu        sync.Mutex
	running   map[*Process]bool
	claims    map[*Process]bool // of the disk: of those that run, and whose load waits for other nodes
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
	p, err := l.newProcess(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be started: %w", load.ErrDied, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = make(map[*Process]bool)
	}
	l.running[p] = true
	p.share = l.share(len(l.running))
	job.Bandwidth = p.share
	_ = p.order(order{Job: &job}) // if that fails, the process has ended, which Plan reports
	l.divide()
	return p, nil
}

// newProcess starts a process. It is told to exit when ctx ends.
func (l *Launcher) newProcess(ctx context.Context, job Job) (*Process, error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	defer stdout.Close()
	p := &Process{launcher: l, db: job.DB, input: job.Input, memory: cmp.Or(job.Options.Memory, load.DefaultMemory), parent: ctx, silence: silence,
		own: 1, in: in, out: out, lines: newLineReader(out)}
	alive, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if p.cmd = exec.CommandContext(alive, program(), Command); l.Program != nil {
		p.cmd = l.Program(alive)
	} else {
		p.cmd.Args[0] = os.Args[0]
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, &p.words
	p.cmd.Cancel, p.cmd.WaitDelay = in.Close, grace
	if err := p.cmd.Start(); err != nil {
		cancel()
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	p.detach = context.AfterFunc(ctx, cancel)
	return p, nil
}

// ended removes a process from those that share the bandwidth.
func (l *Launcher) ended(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, p)
	l.divide()
}
