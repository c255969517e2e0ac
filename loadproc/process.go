package loadproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"sequins/load"
	"sequins/store"
)

// A Process plans a version and then loads it. Plan, Load and Close must be called one after another, by one
// goroutine.
type Process struct {
	launcher *Launcher
	db, name string          // of the version
	parent   context.Context // the context of Start
	cancel   context.CancelFunc
	cmd      *exec.Cmd
	in, out  *os.File
	lines    lineReader
	words    lastWords // standard error of the process; complete after wait
	silence  time.Duration
	share    float64 // of the bandwidth; guarded by launcher.mu

	writing sync.Mutex // guards writes to in
	wait    sync.Once
	status  error // exit status; set after wait
}

// order sends a line to the process and kills the process if that fails.
func (p *Process) order(v any) {
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
}

// next returns the next event.
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
			if m := e.Planned; m.DB != p.db || m.Version != p.name || m.Partitions < 1 {
				return store.Manifest{}, p.died(fmt.Errorf("it has planned %d partitions of version %s of %s", m.Partitions, m.Version, m.DB))
			}
			return *e.Planned, nil
		case e.Progress != nil:
			p.count(e.Progress)
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

// Load makes the process load the missing ones of some ascending partitions by its plan, into dir. It calls
// news after each publication and, several times a second, with the progress. If the process fails, Load
// removes its unpublished files. Errors are those of Plan and of load.Loader.LoadInto.
func (p *Process) Load(dir *store.Dir, want []int, news func(News)) error {
	missing, err := dir.Missing(want)
	if err != nil || len(missing) == 0 {
		return err
	}
	to := dir.Staging()
	p.order(order{Load: &goAhead{Staging: to, Want: missing, Have: len(want) - len(missing)}})
	if err := p.follow(dir, to, news); err != nil {
		p.Close()
		_ = dir.Clear(to) // if that fails, the next start removes them
		return err
	}
	return nil
}

func (p *Process) follow(dir *store.Dir, to store.Staging, news func(News)) error {
	for {
		e, err := p.next()
		if err != nil {
			return err
		}
		switch {
		case e.Progress != nil:
			p.count(e.Progress)
			if err := publish(dir, to, e.Publish); err != nil {
				return err
			}
			news(News{Snapshot: e.Progress.Snapshot, Published: e.Publish})
		case e.Ended != nil && e.Ended.Failure != nil:
			return e.Ended.Failure
		case e.Ended != nil:
			return nil
		default:
			return p.died(errors.New("it says something else than how far it is"))
		}
	}
}

func publish(dir *store.Dir, from store.Staging, partitions []int) error {
	if len(partitions) == 0 {
		return nil
	}
	return dir.Publish(from, partitions...)
}

// count adds what was read to the metrics.
func (p *Process) count(n *progress) {
	m := p.launcher.Metrics
	m.Read(p.db, n.Bytes, n.Records)
	if n.FilesLeft == nil {
		return
	}
	m.Files(p.db, *n.FilesLeft)
	for _, took := range n.Files {
		m.File(p.db, took, *n.FilesLeft)
	}
}

// reap waits for the process to exit.
func (p *Process) reap() {
	p.wait.Do(func() {
		p.status = p.cmd.Wait()
		p.launcher.ended(p)
		p.cancel()
		_, _ = p.in.Close(), p.out.Close()
	})
}

// Close tells the process to exit, kills it after grace, and waits until it has exited. It may be called
// again.
func (p *Process) Close() {
	p.cancel()
	p.reap()
}
