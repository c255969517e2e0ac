package daemon

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/sleep"
)

const (
	// logPatience is how long a line of the log, and the end of the process, wait for what does not take it.
	logPatience = time.Second
	// maxUnwritten limits the lines that wait to be written, in bytes.
	maxUnwritten = 1 << 20
)

var errLogStuck = errors.New("lines are left out: the reader of the pipe, or the disk, does not take them")

// lines writes lines in the background, in the order of the calls: nobody waits for a pipe that nobody reads, or for a disk that hangs.
// Lines beyond maxUnwritten are left out.
type lines struct {
	write func(lines []byte) error
	wake  chan struct{} // capacity 1
	end   chan struct{}
	stuck atomic.Bool // the write that is under way takes longer than logPatience

	mu   sync.Mutex
	next *batch
	err  error // of the last write
}

// batch is what is written at once.
type batch struct {
	lines   []byte
	written chan struct{} // closed afterwards
}

func newLines(write func(lines []byte) error) *lines {
	l := &lines{write: write, wake: make(chan struct{}, 1), end: make(chan struct{}), next: &batch{written: make(chan struct{})}}
	go l.run()
	return l
}

func (l *lines) run() {
	for {
		select {
		case <-l.wake:
		case <-l.end:
			return
		}
		l.mu.Lock()
		b := l.next
		l.next = &batch{written: make(chan struct{})}
		l.mu.Unlock()
		if len(b.lines) > 0 { // a line can wake twice: while its batch is taken, too
			err := l.write(b.lines)
			l.stuck.Store(false)
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
		}
		close(b.written)
	}
}

// add adds a line, and returns a channel that is closed when it is written. The error is that of earlier lines, or errLogStuck.
func (l *lines) add(line []byte) (written <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.next.lines)+len(line) > maxUnwritten {
		return nil, errLogStuck
	}
	l.next.lines = append(l.next.lines, line...)
	sleep.Wake(l.wake)
	return l.next.written, l.err
}

// Write adds a line and waits until it is written, but for logPatience at most, and not while the lines before it are stuck.
func (l *lines) Write(line []byte) (int, error) {
	written, err := l.add(line)
	if written != nil && !l.stuck.Load() && !arrives(written) {
		l.stuck.Store(true)
	}
	return len(line), err
}

// Close waits until all lines are written, but for logPatience at most. An error is no reason for the process to fail.
func (l *lines) Close() {
	written, _ := l.add(nil)
	arrives(written)
	close(l.end)
}

// arrives reports whether a channel is closed within logPatience.
func arrives(written <-chan struct{}) bool {
	select {
	case <-written:
		return true
	case <-time.After(logPatience):
		return false
	}
}
