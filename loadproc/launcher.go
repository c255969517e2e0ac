package loadproc

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"sequins/load"
	"sequins/metrics"
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
	// Metrics counts bytes, records and files read. It may be nil.
	Metrics *metrics.Load
	// Program returns the command that calls Main; nil means this program with the argument Command.
	Program func(context.Context) *exec.Cmd

	mu        sync.Mutex
	running   map[*Process]bool
	bandwidth float64
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
			p.order(order{Bandwidth: &share})
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
	p, err := l.start(ctx, job.DB, job.Version)
	if ctx.Err() != nil && err != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be started: %w", load.ErrDied, err)
	}
	l.mu.Lock()
	p.share = l.share(len(l.running) + 1)
	job.Bandwidth = p.share
	l.mu.Unlock()
	p.order(job)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = make(map[*Process]bool)
	}
	l.running[p] = true
	l.divide()
	return p, nil
}

func (l *Launcher) start(ctx context.Context, db, version string) (*Process, error) {
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
	p := &Process{launcher: l, db: db, name: version, in: in, out: out, lines: newLineReader(out), silence: silence}
	p.parent = ctx
	ctx, p.cancel = context.WithCancel(ctx)
	p.cmd = l.command(ctx)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, &p.words
	p.cmd.Cancel, p.cmd.WaitDelay = in.Close, grace
	if l.Lock != nil {
		p.cmd.ExtraFiles = []*os.File{l.Lock}
	}
	if err := p.cmd.Start(); err != nil {
		p.cancel()
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	return p, nil
}

func (l *Launcher) command(ctx context.Context) *exec.Cmd {
	if l.Program != nil {
		return l.Program(ctx)
	}
	cmd := exec.CommandContext(ctx, program(), Command)
	cmd.Args[0] = os.Args[0]
	return cmd
}

// ended removes a process from those that share the bandwidth.
func (l *Launcher) ended(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, p)
	l.divide()
}
