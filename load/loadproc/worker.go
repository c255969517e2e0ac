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
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"sequins/internal/fsys"
	"sequins/load"
	"sequins/load/unchanged"
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
	// The node decides when a load ends. Service managers signal the children, too.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	isolate()
	stdout := os.Stdout
	os.Stdout = os.Stderr // only events may be written to stdout
	w := newWorker(stdout, open)
	if err := w.run(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type worker struct {
	open  Open
	exit  func(code int)
	limit *rate.Limiter
	ahead chan goAhead
	disk  disk
	may   chan int64 // answers to what disk asks

	job      Job
	progress *load.Progress
	loader   atomic.Pointer[load.Loader] // nil until the source is open

	mu  sync.Mutex
	out io.Writer
	err error // of the first failed write
}

func newWorker(out io.Writer, open Open) *worker {
	w := &worker{out: out, open: open, exit: os.Exit, limit: rate.NewLimiter(rate.Inf, burst),
		ahead: make(chan goAhead, 1), may: make(chan int64, 1), progress: new(load.Progress)}
	w.disk = disk{FS: fsys.OS, ask: func(pending int64) int64 {
		w.tell(event{Pending: pending})
		return <-w.may
	}}
	return w
}

// run executes a job and reports its end. listen exits the process when the node wants no more.
func (w *worker) run(in io.Reader) error {
	orders := newLineReader(in)
	var first order
	if err := orders.next(&first); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	if first.Job == nil {
		return errors.New("reading the job: there is none")
	}
	w.job = *first.Job
	if err := limitMemory(w.job.MemoryLimit, w.job.Options.Memory); err != nil {
		return fmt.Errorf("limiting the memory to %d bytes: %w", w.job.MemoryLimit, err)
	}
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	src, err := w.open(ctx, w.job.Source)
	if err != nil {
		return err
	}
	sums := unchanged.Watch(src)
	loader := load.New(sums, w.progress, w.job.Options)
	w.loader.Store(loader)
	plan, err := loader.PlanInput(ctx, w.job.DB, w.job.Input, w.job.Refuted...)
	if err != nil {
		return err
	}
	m := plan.Manifest()
	if err := w.send(event{Planned: &m}); err != nil {
		return fmt.Errorf("%s: %w", src.Path(w.job.DB, w.job.Input.Name), err) // there would be no order to load
	}
	ahead := <-w.ahead
	reuse := unchanged.New(ctx, loader, sums, plan, ahead.Staging)
	if ahead.Link {
		if err := w.link(ctx, reuse, ahead); err != nil {
			return err
		}
		ahead = <-w.ahead
	}
	go reuse.ReadAhead(ctx, ahead.Want)
	ahead.Staging.FS = &w.disk
	return loader.LoadInto(ctx, plan, load.Target{
		Staging: ahead.Staging, Want: ahead.Want, Have: ahead.Have, MadeFrom: reuse.MadeFrom,
		Publish: func(partitions []int) error {
			w.tell(event{Publish: partitions})
			return nil
		},
	})
}

// link links blocks of other contents, and reports them.
func (w *worker) link(ctx context.Context, reuse *unchanged.Reuse, ahead goAhead) error {
	partitions, bytes, err := reuse.Link(ctx, ahead.Want)
	if err != nil {
		return err
	}
	n := len(partitions)
	if n > 0 {
		w.progress.Reuse(len(ahead.Want)+ahead.Have, ahead.Have, n, bytes)
		w.tell(event{Publish: partitions})
	}
	return w.send(event{Linked: &n})
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
		if o.Limit != nil {
			w.may <- *o.Limit
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
		w.tell(event{})
		loader := w.loader.Load()
		if loader == nil || end {
			continue
		}
		if err := loader.Stalled(); err != nil {
			_ = w.send(event{Ended: &ended{Failure: load.NewFailure(err)}})
			w.exit(1)
			return
		}
	}
}

// tell sends an event with the progress. Each progress is sent before a later one is taken.
func (w *worker) tell(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.progress.Snapshot()
	e.Progress, e.Written, e.Kept = &now, w.disk.written.Load(), w.disk.most.Load()
	_ = w.sendLocked(e)
}
