// Package daemon starts the servers that the benchmarks talk to, waits until they answer, and ends them.
// All listen on the loopback interface only.
package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sequins/bench/internal/proc"
	"sequins/test/ports"
)

// Daemon is a running server.
type Daemon struct {
	Addr string
	Took time.Duration // from the start of the process until it was ready
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{} // closed when the process has ended
	temp string        // a directory that goes with it
}

// readyTime is how long a server may take until it answers; loading ten million records is part of it.
const readyTime = 5 * time.Minute

// start runs a server, which make puts together given its address and a directory of its own, on the
// processors in cpus, and waits for ready.
func start(cpus string, ready func(addr string) error, makeArgs func(addr, temp string) ([]string, error)) (*Daemon, error) {
	addr, err := ports.Free()
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "sequins-bench-")
	if err != nil {
		return nil, err
	}
	d := &Daemon{Addr: addr, log: new(bytes.Buffer), done: make(chan struct{}), temp: temp}
	var begun time.Time
	args, err := makeArgs(addr, temp)
	if err == nil {
		d.cmd = proc.OnCPUs(cpus, args[0], args[1:]...)
		d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
		begun = time.Now()
		err = d.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	go func() {
		_ = d.cmd.Wait() // how it ended is of no interest: that it did, is
		close(d.done)
	}()
	if err := d.await(ready); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Base(args[0]), err), d.Stop())
	}
	d.Took = time.Since(begun)
	return d, nil
}

// A server is asked whether it is ready every askPeriod, and after askOften, when it is loading, every askSeldom.
const (
	askPeriod = 2 * time.Millisecond
	askOften  = 2 * time.Second
	askSeldom = 20 * time.Millisecond
)

func (d *Daemon) await(ready func(addr string) error) error {
	begun := time.Now()
	for {
		pause := askPeriod
		if time.Since(begun) > askOften {
			pause = askSeldom
		}
		err := ready(d.Addr)
		if err == nil {
			return nil
		}
		select {
		case <-d.done:
			return fmt.Errorf("ended at once: %s", bytes.TrimSpace(d.log.Bytes()))
		case <-time.After(pause):
		}
		if time.Since(begun) > readyTime {
			return fmt.Errorf("not ready after %v: %w", readyTime, err)
		}
	}
}

// CPU is the processor time that the server has used, its children included.
func (d *Daemon) CPU() (time.Duration, error) { return proc.CPUOf(d.cmd.Process.Pid) }

// memoryPeriod is the time between two looks at the memory of a server.
const memoryPeriod = 10 * time.Millisecond

// WatchMemory looks at how much memory the server and its children have together, apart from that of files, until peak
// is called, which returns the most that there was, in bytes.
func (d *Daemon) WatchMemory() (peak func() int64) {
	var most int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if n, err := proc.AnonymousMemory(d.cmd.Process.Pid); err == nil { // else it, or a child of it, has just ended
				most = max(most, n)
			}
			select {
			case <-stop:
				return
			case <-time.After(memoryPeriod):
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-stopped
		return most
	}
}

// Read is how many bytes the server has had fetched from disks.
func (d *Daemon) Read() (int64, error) { return proc.BytesReadBy(d.cmd.Process.Pid) }

// Signal sends the server a signal.
func (d *Daemon) Signal(s syscall.Signal) error { return d.cmd.Process.Signal(s) }

// Stop ends the server and removes what it was given.
func (d *Daemon) Stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	select {
	case <-d.done:
	case <-time.After(20 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.done
	}
	return os.RemoveAll(d.temp)
}

// listening is ready when somebody takes connections.
func listening(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// Ready asks a sequins whether it serves everything.
func Ready(addr string) error {
	resp, err := http.Get("http://" + addr + "/readyz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
