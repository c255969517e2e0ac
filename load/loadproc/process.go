package loadproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/content"
	"sequins/load"
	"sequins/store"
)

// A Process plans a version and then loads it. Plan, Link, Claim, Load and Close must be called one after another, by
// one goroutine. The process ends with Load, and what it has claimed of the disk with Close.
type Process struct {
	launcher *Launcher
	db       string
	input    content.Input   // see Job
	parent   context.Context // the context of Start
	silence  time.Duration
	memory   int64         // for sorting, in bytes
	share    float64       // of the bandwidth; guarded by launcher.mu
	demand   demand        // on the disk; set by Claim
	missing  int           // partitions that demand is of
	own      float64       // the part of demand that is of partitions that the process loads: 1 until Load
	left     float64       // what it will still write to the disk, in bytes; guarded by launcher.mu
	others   float64       // what will still be copied from other nodes, in bytes; guarded by launcher.mu
	freed    int64         // Room.Freed; set by Claim
	staging  store.Staging // set by Link or Load
	kept     int64         // the most bytes that it has written to files that were there at a time, by its own account
	limit    int64         // of what it writes in all, in bytes
	allowed  atomic.Int64  // bytes that it may still write before it asks again
	last     load.Snapshot // that was counted

	cancel  context.CancelFunc // tells the process to exit
	detach  func() bool        // makes the process outlive parent
	cmd     *exec.Cmd
	in, out *os.File
	lines   lineReader
	words   lastWords  // standard error of the process; complete after wait
	writing sync.Mutex // guards writes to in
	wait    sync.Once
	status  error // exit status; set after wait
}

// order sends a line to the process and kills the process if that fails.
func (p *Process) order(v any) error {
	line, err := appendLine(v)
	if err == nil {
		p.writing.Lock()
		defer p.writing.Unlock()
		if err = p.in.SetWriteDeadline(time.Now().Add(orderTimeout)); err == nil {
			_, err = p.in.Write(line)
		}
	}
	if err != nil { // the process exited, was told to, or does not read
		_ = p.cmd.Process.Kill()
	}
	return err
}

func (p *Process) next() (e event, err error) {
	if err := p.out.SetReadDeadline(time.Now().Add(p.silence)); err != nil {
		return e, p.died(err)
	}
	err = p.lines.next(&e)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	if err != nil {
		return e, p.died(err)
	}
	return e, nil
}

// died ends the process and returns the error for why, which is io.EOF if the process exited or closed its
// output.
func (p *Process) died(why error) error {
	if err := p.parent.Err(); err != nil {
		p.Close()
		return err
	}
	if why != io.EOF { //nolint:errorlint // as it comes from lineReader
		_ = p.cmd.Process.Kill()
		p.Close()
		return fmt.Errorf("%w: %w%s", load.ErrDied, why, p.words.quote())
	}
	defer time.AfterFunc(grace, func() { _ = p.cmd.Process.Kill() }).Stop() // it may have closed only its output
	p.reap()
	status := "exit status 0"
	if p.status != nil {
		status = p.status.Error()
	}
	p.Close()
	return fmt.Errorf("%w: %s%s", load.ErrDied, status, p.words.quote())
}

// Plan waits for the plan and returns its manifest. An error is one of load.Loader.Plan, as a *load.Failure,
// or wraps load.ErrDied, or is that of Start's context.
func (p *Process) Plan() (store.Manifest, error) {
	for {
		e, err := p.next()
		if err != nil {
			return store.Manifest{}, err
		}
		switch {
		case e.Planned != nil:
			m := e.Planned
			if m.DB != p.db || m.Version != p.input.Name || p.input.Hash != "" && m.Input != p.input.Hash || m.Partitions < 1 {
				err := fmt.Errorf("it has planned %d partitions of input %s of version %s of %s", m.Partitions, m.Input, m.Version, m.DB)
				return store.Manifest{}, p.died(err)
			}
			return *m, nil
		case e.Progress != nil:
			p.count(*e.Progress)
		case e.Ended != nil && e.Ended.Failure != nil:
			return store.Manifest{}, e.Ended.Failure
		default:
			return store.Manifest{}, p.died(errors.New("it says something else than its plan"))
		}
	}
}

// News is the progress of a load since the previous News.
type News struct {
	Snapshot  load.Snapshot
	Published []int // partitions
}

// Link makes the process link the blocks of those of the missing ones of some ascending partitions whose input is that of a block of
// another content in the store, see package unchanged. It is called before Claim, as links take no room, or not at all. Its news and
// errors are those of Load.
func (p *Process) Link(dir *store.Dir, want []int, news func(News)) error {
	return p.carryOut(dir, want, true, news)
}

// Load makes the process load the missing ones of some ascending partitions by its plan, into dir, and ends it. It calls
// news after each publication and, several times a second, with the progress. If the process fails, Load
// removes its unpublished files. Errors are those of Plan and of load.Loader.LoadInto.
func (p *Process) Load(dir *store.Dir, want []int, news func(News)) error {
	defer p.exit()
	return p.carryOut(dir, want, false, news)
}

func (p *Process) carryOut(dir *store.Dir, want []int, link bool, news func(News)) error {
	missing, err := dir.Missing(want)
	if !link {
		p.leaveToOthers(len(missing))
	}
	if err != nil || len(missing) == 0 {
		return err
	}
	if p.staging.Path == "" {
		p.staging = dir.Staging()
	}
	ahead := goAhead{Staging: p.staging, Want: missing, Have: len(want) - len(missing), Link: link}
	_ = p.order(order{Load: &ahead})
	if err := p.follow(dir, ahead, news); err != nil {
		p.Close()
		_ = dir.Clear(ahead.Staging) // if that fails, the next start removes them
		return p.lacked(err)
	}
	return nil
}

func (p *Process) follow(dir *store.Dir, ahead goAhead, news func(News)) error {
	for {
		e, err := p.next()
		if err != nil {
			return err
		}
		switch {
		case e.Progress != nil:
			p.count(*e.Progress)
			p.kept = max(0, e.Kept)
			p.allowed.Store(min(p.allowed.Load(), p.limit-e.Written))
			if len(e.Publish) > 0 {
				if err := dir.Publish(ahead.Staging, e.Publish...); err != nil {
					return err
				}
			}
			news(News{Snapshot: *e.Progress, Published: e.Publish})
			if all := e.Progress.Partitions; ahead.Link || all > 0 && e.Progress.PartitionsDone >= all && e.Pending == 0 {
				continue // nothing more is written
			}
			if err := p.allow(e.Written, e.Pending); err != nil {
				return err
			}
		case e.Ended != nil && e.Ended.Failure != nil:
			return e.Ended.Failure
		case e.Linked != nil && ahead.Link:
			p.launcher.Metrics.Unchanged.Add(float64(max(0, *e.Linked)), p.db)
			return nil
		case e.Ended != nil && !ahead.Link:
			return nil
		default:
			return p.died(errors.New("it says something else than how far it is"))
		}
	}
}

// maxCounted limits the files of one event that are counted: the process may say anything.
const maxCounted = 10_000

// count adds what was read to the metrics, and takes what was written off the claim.
func (p *Process) count(now load.Snapshot) {
	p.advance(now)
	before, m := p.last, p.launcher.Metrics
	p.last = now
	m.Bytes.Add(float64(max(0, now.Fetched-before.Fetched)), p.db)
	m.Records.Add(float64(max(0, now.Scanned-before.Scanned)), p.db)
	left := now.Files - now.FilesDone
	if left != before.Files-before.FilesDone {
		m.Statsd.Files(p.db, left)
	}
	if n := now.Read - before.Read; n > 0 {
		took := (now.ReadTime - before.ReadTime) / time.Duration(n)
		for range min(n, maxCounted) {
			m.Statsd.File(p.db, took)
		}
	}
}

func (p *Process) reap() {
	p.wait.Do(func() {
		p.status = p.cmd.Wait()
		p.cancel()
		_, _ = p.in.Close(), p.out.Close()
		p.detach()
		p.launcher.ended(p)
		p.allowed.Store(0)
	})
}

// exit tells the process to exit, kills it after grace, and waits until it has exited.
func (p *Process) exit() {
	p.cancel()
	p.reap()
}

// Close ends the process, if it runs, and its claim. It may be called again.
func (p *Process) Close() {
	p.exit()
	p.launcher.mu.Lock()
	defer p.launcher.mu.Unlock()
	delete(p.launcher.claims, p)
}
