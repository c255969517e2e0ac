package loadproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"sequins/load"
	"sequins/source"
)

// Open opens the source that a Launcher's Source describes.
type Open func(ctx context.Context, source json.RawMessage) (source.Source, error)

// reportPeriod is the time between two progress events.
const reportPeriod = 250 * time.Millisecond

// burst is how many bytes may be read from the source at once, whatever the limit. Loads read in pieces of
// this size.
const burst = 1 << 20

// Main is the main function of a load process. It communicates with the node over standard input and output,
// and returns the exit code.
func Main(open Open) int {
	// The node decides when a load ends. Service managers and ^C signal the children, too.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	isolate()
	stdout := os.Stdout
	os.Stdout = os.Stderr // only events may be written to stdout
	w := &worker{out: stdout, ahead: make(chan goAhead, 1), open: open, exit: os.Exit}
	if err := w.run(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A worker executes a job. It is the load.Meter of the job.
type worker struct {
	open  Open
	exit  func(code int)
	job   Job
	limit *rate.Limiter
	ahead chan goAhead

	progress load.Progress
	calls    calls // of the source

	mu   sync.Mutex
	out  io.Writer
	read progress // since the last event; its Snapshot is unused
	err  error    // of the first failed write
}

func (w *worker) run(in io.Reader) error {
	orders := newLineReader(in)
	if err := orders.next(&w.job); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	if err := limitMemory(w.job.MemoryLimit, w.job.Options.Memory); err != nil {
		return fmt.Errorf("limiting the memory to %d bytes: %w", w.job.MemoryLimit, err)
	}
	w.limit = rate.NewLimiter(rate.Inf, burst)
	w.setBandwidth(w.job.Bandwidth)
	w.job.Options.Bandwidth = w.limit
	go w.listen(orders)
	done, reported := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(reported)
		w.report(done)
	}()
	err := w.load(context.Background())
	close(done)
	<-reported
	return w.send(event{Ended: &ended{Failure: load.NewFailure(err)}})
}

func (w *worker) load(ctx context.Context) error {
	src, err := w.open(ctx, w.job.Source)
	if err != nil {
		return err
	}
	if c, ok := src.(io.Closer); ok {
		defer c.Close()
	}
	loader := load.New(watchedSource{src, &w.calls}, nil, w, w.job.Options)
	plan, err := loader.Plan(ctx, w.job.DB, w.job.Version, w.job.Refuted...)
	if err != nil {
		return err
	}
	m := plan.Manifest()
	if err := w.send(event{Planned: &m}); err != nil {
		return fmt.Errorf("%s: %w", src.Path(w.job.DB, w.job.Version), err) // there would be no order to load
	}
	ahead := <-w.ahead
	return loader.LoadInto(ctx, plan, load.Target{
		Staging: ahead.Staging, Want: ahead.Want, Have: ahead.Have,
		Publish: func(partitions []int) error {
			w.tell(partitions)
			return nil
		},
	}, &w.progress)
}

// listen executes orders. It exits the process at the end of the input, when the node has died or wants the
// load to end, and at an invalid line.
func (w *worker) listen(orders lineReader) {
	for {
		var o order
		if err := orders.next(&o); err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "reading orders:", err)
			}
			w.exit(1)
			return
		}
		if o.Bandwidth != nil {
			w.setBandwidth(*o.Bandwidth)
		}
		if o.Load != nil {
			select {
			case w.ahead <- *o.Load:
			default: // a repeated order
			}
		}
	}
}

func (w *worker) setBandwidth(bytesPerSecond float64) {
	limit := rate.Inf
	if bytesPerSecond > 0 {
		limit = rate.Limit(bytesPerSecond)
	}
	w.limit.SetLimit(limit)
}

// send sends an event. It returns an error if the event cannot be encoded or a write has failed.
func (w *worker) send(e event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sendLocked(e)
}

func (w *worker) sendLocked(e event) error {
	line, err := appendLine(e)
	if err != nil {
		return err
	}
	if w.err == nil {
		_, w.err = w.out.Write(line)
	}
	return w.err
}

// report sends the progress periodically until done is closed, which also shows that the process is alive. It
// exits the process if the source hangs, because a call that never returns cannot be canceled.
func (w *worker) report(done <-chan struct{}) {
	tick := time.NewTicker(reportPeriod)
	defer tick.Stop()
	for end := false; !end; {
		select {
		case <-tick.C:
		case <-done:
			end = true
		}
		w.tell(nil)
		if err := w.calls.stalled(); err != nil && !end {
			_ = w.send(event{Ended: &ended{Failure: load.NewFailure(err)}})
			w.exit(1)
			return
		}
	}
}

// tell sends the progress and the partitions to publish.
func (w *worker) tell(publish []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read.Snapshot = w.progress.Snapshot()
	_ = w.sendLocked(event{Progress: &w.read, Publish: publish})
	w.read = progress{}
}

// Read implements load.Meter.
func (w *worker) Read(_ string, bytes, records int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read.Bytes += bytes
	w.read.Records += records
}

// Files implements load.Meter.
func (w *worker) Files(_ string, left int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read.FilesLeft = &left
}

// File implements load.Meter.
func (w *worker) File(_ string, took time.Duration, left int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read.Files = append(w.read.Files, took)
	w.read.FilesLeft = &left
}

// Begin implements load.Meter. The node counts the loads.
func (w *worker) Begin(string) func(error) { return func(error) {} }
