package loadproc

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A child is an operating system process that carries out jobs, one after another.
type child struct {
	cancel      context.CancelFunc
	cmd         *exec.Cmd
	in, out     *os.File
	lines       lineReader
	words       lastWords // standard error of the process; complete after wait
	memoryLimit int64     // of its jobs

	writing sync.Mutex // guards writes to in
	wait    sync.Once
	status  error // exit status; set after wait
}

func (l *Launcher) newChild(memoryLimit int64) (*child, error) {
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
	c := &child{in: in, out: out, lines: newLineReader(out), memoryLimit: memoryLimit}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.cmd = l.command(ctx)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = stdin, stdout, &c.words
	c.cmd.Cancel, c.cmd.WaitDelay = in.Close, grace
	if l.Lock != nil {
		c.cmd.ExtraFiles = []*os.File{l.Lock}
	}
	if err := c.cmd.Start(); err != nil {
		cancel()
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	return c, nil
}

func (l *Launcher) command(ctx context.Context) *exec.Cmd {
	if l.Program != nil {
		return l.Program(ctx)
	}
	cmd := exec.CommandContext(ctx, program(), Command)
	cmd.Args[0] = os.Args[0]
	return cmd
}

// order sends a line to the process and kills the process if that fails.
func (c *child) order(v any) error {
	line, err := appendLine(v)
	if err == nil {
		c.writing.Lock()
		defer c.writing.Unlock()
		if err = c.in.SetWriteDeadline(time.Now().Add(orderTimeout)); err == nil {
			_, err = c.in.Write(line)
		}
	}
	if err != nil { // the process exited, was told to, or does not read
		_ = c.cmd.Process.Kill()
	}
	return err
}

// reap waits for the process to exit.
func (c *child) reap() {
	c.wait.Do(func() {
		c.status = c.cmd.Wait()
		c.cancel()
		_, _ = c.in.Close(), c.out.Close()
	})
}

// end tells the process to exit, kills it after grace, and waits until it has exited.
func (c *child) end() {
	c.cancel()
	c.reap()
}
