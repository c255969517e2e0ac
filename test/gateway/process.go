package gateway

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sequins/test/expect"
)

// startTime bounds the time until the first answer, on a busy machine.
const startTime = 2 * time.Minute

// Process is a running server.
type Process struct {
	Addr string // host:port
	cmd  *exec.Cmd
	done chan struct{}
	log  bytes.Buffer // output of the process; read it after done
}

// RunProcess runs a server, which listens on an address, until Kill. It returns when the server accepts connections.
func RunProcess(addr, binary string, args ...string) (*Process, error) {
	p := &Process{Addr: addr, cmd: exec.Command(binary, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.run(); err != nil {
		return nil, err
	}
	if err := p.waitListening(); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// run starts the process. Pdeathsig applies to the thread that starts it, so that thread is locked while the process
// lives.
func (p *Process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is always killed
			close(p.done)
		}
	}()
	return <-started
}

func (p *Process) waitListening() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(startTime); time.Now().Before(end); {
		if c, err := net.Dial("tcp", p.Addr); err == nil {
			return c.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended: %s", p.log.String())
		case <-tick.C:
		}
	}
	return fmt.Errorf("no answer from the server within %v", startTime)
}

// Endpoint returns the server's URL.
func (p *Process) Endpoint() string { return "http://" + p.Addr }

// Kill kills the server with SIGKILL.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// CPU returns the CPU time of the server.
func (p *Process) CPU(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	expect.NoError(t, err)
	// proc(5): utime and stime are fields 14 and 15, in hundredths of a second; field 2, a name in parentheses, may
	// contain spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		expect.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// Freeze stops the process: connections stay open, new ones are accepted by
// the kernel, and nothing answers. All threads have stopped when it returns.
func (p *Process) Freeze(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Error(err)
	}
}

// Thaw continues the process.
func (p *Process) Thaw(t testing.TB) { p.signal(t, syscall.SIGCONT) }

func (p *Process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}
