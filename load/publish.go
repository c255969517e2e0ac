package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/source"
)

// verifyPeriod is the interval of checks of the source while a load has blocks to publish.
const verifyPeriod = time.Second

// A publisher publishes finished blocks after it has checked that the source still holds the files of
// the plan. A job that changes its files in place would otherwise produce blocks that mix old and new
// files.
type publisher struct {
	*job
	syncs    errgroup.Group // running syncs of blocks
	mu       sync.Mutex
	finished []int // partitions that are durable under temporary names
}

// finish syncs a written block in the background. It blocks while as many syncs run as there are
// workers.
func (p *publisher) finish(file fsys.File, partition int) {
	p.syncs.Go(func() error {
		if err := p.target.Staging.FinishBlock(file); err != nil {
			return fmt.Errorf("block %d: %w", partition, err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.finished = append(p.finished, partition)
		return nil
	})
}

func (p *publisher) take() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.finished
	p.finished = nil
	return taken
}

// keeps reports whether what a load has finished stays if the load does not succeed. It does not if records may be left out: a later load would
// not count those of the files that it need not read, and leave out more than it may.
func (p *publisher) keeps() bool { return p.tolerance == nil }

// run publishes finished blocks once per period, until done is closed.
func (p *publisher) run(ctx context.Context, done <-chan struct{}) error {
	if !p.keeps() {
		<-done
		return nil
	}
	tick := time.NewTicker(verifyPeriod)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
			if err := p.publish(ctx); err != nil {
				return err
			}
		}
	}
}

// publish verifies the source and publishes finished blocks. If that fails, it removes them.
func (p *publisher) publish(ctx context.Context) error {
	partitions := p.take()
	if len(partitions) == 0 {
		return nil
	}
	err := p.Verify(ctx, p.plan)
	if err == nil {
		p.progress.update(func(now *Snapshot) { now.PartitionsDone += int64(len(partitions)) }) // before Publish, so that a reader of the new partitions sees them counted
		err = p.target.Publish(partitions)
	}
	if err != nil {
		p.remove(partitions)
	}
	return err
}

// remove removes finished blocks. Errors are ignored: the store removes leftover files at its next
// start.
func (p *publisher) remove(partitions []int) {
	for _, partition := range partitions {
		_ = p.target.Staging.RemoveBlock(partition)
	}
}

// Verify returns an error of class source.ErrChanged if the version's files are not those of the plan.
func (l *Loader) Verify(ctx context.Context, plan *Plan) error {
	now, err := l.list(ctx, plan.DB, plan.Version)
	path := l.src.Path(plan.DB, plan.Version)
	if errors.Is(err, ErrIncomplete) {
		return fmt.Errorf("%s: %w: while it was read: %v", path, source.ErrChanged, err) //nolint:errorlint // of one class, which is not that of a version that is not there yet
	}
	if err != nil {
		return err
	}
	if d := Differing(plan.Manifest(), now.data); !d.None() {
		return fmt.Errorf("%s: %w: while it was read, %s", path, source.ErrChanged, d)
	}
	for i, was := range plan.Files { // whose times may tell what marks do not
		if err := was.Check(now.data[i]); err != nil {
			return fmt.Errorf("%s/%s: %w", path, was.Name, err)
		}
	}
	if plan.ready != nil { // whose manifest may have changed
		_, err = l.inputOf(now, plan.DB, content.Input{Name: plan.Version, Hash: plan.Input})
	}
	return err
}

// loadAndPublish runs load and publishes finished partitions, even if others fail, see keeps.
func (j *job) loadAndPublish(ctx context.Context, load func(context.Context) error) error {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j.publisher.syncs.SetLimit(j.opts.workers())
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		if err := j.publisher.run(working, done); err != nil {
			cancel(err)
		}
	}()
	err := load(working)
	if serr := j.publisher.syncs.Wait(); err == nil {
		err = serr
	}
	close(done)
	<-stopped
	switch cause := context.Cause(working); {
	case ctx.Err() != nil:
	case cause != nil: // a failed publication ended the load
		err = cause
	case err == nil || j.publisher.keeps():
		if perr := j.publisher.publish(ctx); perr != nil {
			err = errors.Join(perr, err)
		}
	}
	j.publisher.remove(j.publisher.take())
	return err
}
