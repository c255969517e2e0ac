package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Load describes the requests to a server.
type Load struct {
	Addr     string
	Conns    int
	Requests [][]byte // sent one after the other, from the first again after the last
	Parse    Parser
	// Check returns an error if the answer to Requests[i] is wrong.
	Check    func(i int, r Reply) error
	Duration time.Duration // 0: until the context is done
	Rate     float64       // requests a second, open loop; 0: closed loop
	// Second, if not nil, is called at the end of each second, with its number from 0.
	Second func(n int, s *Times)
}

// Result is what came of a Load.
type Result struct {
	Times    Times         // of all answers
	Failures int           // answers that Check refused, and requests without any
	Failure  error         // the first of them
	Took     time.Duration // from the first request to the last answer that was waited for
}

// timerTag stands in epoll for the timer of an open loop; connections have their index.
const timerTag = -1

// drainTime is how long answers to the last requests are waited for.
const drainTime = 5 * time.Second

type client struct {
	Load
	epoll, timer int
	conns        []conn
	idle         []int32 // connections without a request
	due          int     // open loop: requests that have been due
	next         int     // requests that have been sent
	start        time.Time
	second       int
	now          Times // of the second that runs
	result       Result
}

type conn struct {
	fd      int
	request int           // index into Requests
	from    time.Duration // since start, when its time began
	busy    bool
	buf     []byte
	n       int // received
}

// Run sends a load and waits for the answers. It locks its goroutine to a thread.
func Run(ctx context.Context, l Load) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := &client{Load: l, timer: -1}
	defer c.close()
	if err := c.open(); err != nil {
		return Result{}, err
	}
	err := c.run(ctx)
	c.result.Took = time.Since(c.start)
	return c.result, err
}

func (c *client) open() (err error) {
	if c.epoll, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	c.conns = make([]conn, c.Conns)
	for i := range c.conns {
		fd, err := dial(c.Addr)
		if err != nil {
			return err
		}
		c.conns[i] = conn{fd: fd, buf: make([]byte, 64<<10)}
		c.idle = append(c.idle, int32(i))
		if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return err
		}
	}
	return nil
}

// dial connects, and takes the socket away from Go's own poller.
func dial(addr string) (int, error) {
	nc, err := net.Dial("tcp", addr) // without delay, as Go sets it
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	f, err := nc.(*net.TCPConn).File()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd())) // Fd makes it a blocking one
	if err != nil {
		return 0, err
	}
	return fd, unix.SetNonblock(fd, true)
}

func (c *client) close() {
	for _, cn := range c.conns {
		if cn.fd > 0 {
			unix.Close(cn.fd)
		}
	}
	if c.timer >= 0 {
		unix.Close(c.timer)
	}
	unix.Close(c.epoll)
}

func (c *client) run(ctx context.Context) error {
	c.start = time.Now()
	if c.Rate > 0 {
		if err := c.startTimer(); err != nil {
			return err
		}
	}
	if err := c.handle(nil, 0, false); err != nil { // the first requests of a closed loop
		return err
	}
	events := make([]unix.EpollEvent, 256)
	for stopped := false; ; {
		n, err := unix.EpollWait(c.epoll, events, 100)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("epoll: %w", err)
		}
		since := time.Since(c.start)
		if over := c.Duration > 0 && since >= c.Duration || ctx.Err() != nil; over && !stopped {
			stopped, c.Duration = true, since // answers are still waited for
		}
		if err := c.handle(events[:max(n, 0)], since, stopped); err != nil {
			return err
		}
		if stopped && (c.allAnswered() || since > c.Duration+drainTime) {
			c.finish()
			return nil
		}
	}
}

func (c *client) startTimer() (err error) {
	if c.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK); err != nil {
		return err
	}
	every := unix.NsecToTimespec(c.dueAt(1).Nanoseconds())
	if err := unix.TimerfdSettime(c.timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		return err
	}
	return unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, c.timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: timerTag})
}

// dueAt is when request n of an open loop is due.
func (c *client) dueAt(n int) time.Duration {
	return time.Duration(float64(n) * float64(time.Second) / c.Rate)
}

func (c *client) handle(events []unix.EpollEvent, since time.Duration, stopped bool) error {
	for _, e := range events {
		if e.Fd == timerTag {
			var count [8]byte
			_, _ = unix.Read(c.timer, count[:]) // how often it has gone off is known from the time
			continue
		}
		if err := c.receive(int(e.Fd), stopped); err != nil {
			return err
		}
	}
	if stopped && c.Rate == 0 {
		return nil
	}
	for !stopped && c.Rate > 0 && c.dueAt(c.due+1) <= since {
		c.due++
	}
	for len(c.idle) > 0 && (c.Rate == 0 || c.next < c.due) {
		// In turn: a server closes a connection on which nothing has been asked for long.
		i, from := c.idle[0], time.Since(c.start)
		c.idle = append(c.idle[:0], c.idle[1:]...)
		if c.Rate > 0 {
			from = c.dueAt(c.next + 1)
		}
		if err := c.send(int(i), from); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) allAnswered() bool { return c.next >= c.due && len(c.idle) == len(c.conns) }

// send sends the next request; its time counts from from.
func (c *client) send(i int, from time.Duration) error {
	cn := &c.conns[i]
	cn.request, cn.from, cn.busy = c.next%len(c.Requests), from, true
	c.next++
	b := c.Requests[cn.request]
	n, err := unix.Write(cn.fd, b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("writing a request: %w", err)
	}
	return nil
}

func (c *client) receive(i int, stopped bool) error {
	cn := &c.conns[i]
	n, err := unix.Read(cn.fd, cn.buf[cn.n:])
	if err == unix.EAGAIN || err == unix.EINTR {
		return nil
	}
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	cn.n += n
	reply, length, err := c.Parse(cn.buf[:cn.n])
	if err == nil && length == 0 {
		if cn.n == len(cn.buf) {
			cn.buf = append(cn.buf, make([]byte, len(cn.buf))...)
		}
		return nil
	}
	if err == nil && length != cn.n {
		err = fmt.Errorf("%d bytes behind an answer", cn.n-length)
	}
	if err != nil {
		return err // the stream is out of step
	}
	cn.n, cn.busy = 0, false
	since := time.Since(c.start)
	c.count(cn, reply, since)
	if c.Rate > 0 || stopped {
		c.idle = append(c.idle, int32(i))
		return nil
	}
	return c.send(i, since)
}

// count takes an answer into the times: of the second in which it came, and of the whole.
func (c *client) count(cn *conn, reply Reply, since time.Duration) {
	if err := c.Check(cn.request, reply); err != nil {
		c.fail(fmt.Errorf("%.60q: %w", c.Requests[cn.request], err))
	}
	for c.Second != nil && int(since/time.Second) > c.second {
		c.endSecond()
	}
	c.now.add(since - cn.from)
}

func (c *client) endSecond() {
	c.result.Times.merge(&c.now)
	if c.Second != nil {
		c.Second(c.second, &c.now)
	}
	c.second++
	c.now = Times{}
}

func (c *client) fail(err error) {
	if c.result.Failures++; c.result.Failure == nil {
		c.result.Failure = err
	}
}

// finish counts the requests without an answer. The last, incomplete second is not reported.
func (c *client) finish() {
	c.result.Times.merge(&c.now)
	for i := range c.conns {
		if c.conns[i].busy {
			c.fail(fmt.Errorf("no answer within %v of the end", drainTime))
		}
	}
	for range max(0, c.due-c.next) {
		c.fail(errors.New("no connection was free to send a request"))
	}
}
