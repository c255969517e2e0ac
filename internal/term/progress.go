package term

import (
	"fmt"
	"io"
	"sync"
	"time"

	"sequins/internal/human"
)

// Progress shows the progress of work on the last line of a terminal, from a second after its beginning. Without a terminal it shows
// nothing. It is safe for concurrent use.
type Progress struct {
	out    io.Writer
	what   string        // what is being done
	amount func() string // how much of it is done, whenever the line is drawn; nil if that is not known

	mu    sync.Mutex
	drawn bool
	timer *time.Timer // of the next drawing; nil without a terminal and after Stop
}

const (
	// patience is how long work takes before its progress is shown.
	patience   = time.Second
	drawPeriod = 200 * time.Millisecond
	clearLine  = "\r\x1b[K"
)

// NewProgress starts to show the progress of work. Stop must be called.
func NewProgress(out io.Writer, what string, amount func() string) *Progress {
	p := &Progress{out: out, what: what, amount: amount}
	if Is(out) {
		p.start()
	}
	return p
}

// Bytes returns an amount of bytes, their rate from now on and the remaining time. A total of 0 is unknown.
func Bytes(now func() (done, total int64)) func() string {
	begun := time.Now()
	return func() string {
		done, total := now()
		text, took := human.Size(done), time.Since(begun)
		if total > 0 {
			text += " of " + human.Size(total)
		}
		if done > 0 && took > 0 {
			text += fmt.Sprintf(", %s a second", human.Size(int64(float64(done)/took.Seconds())))
			if left := total - done; left > 0 {
				text += ", about " + human.Duration(time.Duration(float64(took)*float64(left)/float64(done))) + " left"
			}
		}
		return text
	}
}

func (p *Progress) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(patience, p.draw)
}

// draw draws the line, and plans the next drawing.
func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil { // Stop was faster
		return
	}
	line := p.what
	if p.amount != nil {
		line += ": " + p.amount()
	}
	p.drawn = true
	_, _ = io.WriteString(p.out, clearLine+NoWrap+line+Wrap) // errors are ignored
	p.timer.Reset(drawPeriod)
}

// Print calls f, which prints, without the line. The line comes back by itself.
func (p *Progress) Print(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	f()
}

// Stop removes the line for good.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.clear()
}

func (p *Progress) clear() {
	if p.drawn {
		_, _ = io.WriteString(p.out, clearLine)
		p.drawn = false
	}
}
