package term

import (
	"fmt"
	"io"
	"sync"
	"time"

	"sequins/internal/human"
)

// Progress shows the progress of work on the last line of a terminal, from a second after its beginning. Without a
// terminal, and as nil, it shows nothing. It is safe for concurrent use.
type Progress struct {
	out io.Writer

	mu    sync.Mutex
	what  string // what is being done
	thing string // what is counted: "" for bytes, else the name of one
	done  int64
	total int64 // 0 if unknown
	begun time.Time
	drawn bool
	now   func() (done, total int64) // see Follow
	timer *time.Timer                // of the next drawing; nil without a terminal and after Stop
}

const (
	// patience is how long work takes before its progress is shown.
	patience   = time.Second
	drawPeriod = 200 * time.Millisecond
	clearLine  = "\r\x1b[K"
)

// NewProgress starts to show the progress of work on bytes. Stop must be called.
func NewProgress(out io.Writer, what string, total int64) *Progress {
	return newProgress(out, what, "", total)
}

// NewCount is NewProgress for things, of a number that is not known yet.
func NewCount(out io.Writer, what, thing string) *Progress { return newProgress(out, what, thing, 0) }

func newProgress(out io.Writer, what, thing string, total int64) *Progress {
	p := &Progress{out: out, what: what, thing: thing, total: total, begun: time.Now()}
	if Is(out) {
		p.start()
	}
	return p
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
	if p.now != nil {
		p.done, p.total = p.now()
	}
	p.drawn = true
	_, _ = io.WriteString(p.out, clearLine+NoWrap+p.line(time.Now())+Wrap) // errors are ignored
	p.timer.Reset(drawPeriod)
}

// Add counts processed bytes or things.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
}

// Set sets what was processed so far, and the total.
func (p *Progress) Set(done, total int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total = done, total
}

// Follow makes p show what now returns whenever it is drawn.
func (p *Progress) Follow(now func() (done, total int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// Print calls f, which prints, without the line. The line comes back by itself.
func (p *Progress) Print(f func()) {
	if p == nil {
		f()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	f()
}

// Stop removes the line for good. Later calls do nothing.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
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

// line describes the progress: what is done, the amount, the rate and the remaining time.
func (p *Progress) line(now time.Time) string {
	took := now.Sub(p.begun)
	text, amount := p.what, p.amount()
	if amount != "" {
		text += ": " + amount
	}
	if p.thing == "" && p.done > 0 && took > 0 {
		text += fmt.Sprintf(", %s a second", human.Size(int64(float64(p.done)/took.Seconds())))
	}
	if left := p.total - p.done; left > 0 && p.done > 0 {
		text += ", about " + human.Duration(time.Duration(float64(took)*float64(left)/float64(p.done))) + " left"
	}
	return text
}

// amount describes how much is done.
func (p *Progress) amount() string {
	switch {
	case p.thing != "" && p.total > 0:
		return fmt.Sprintf("%d of %s", p.done, human.Plural(int(p.total), p.thing))
	case p.thing != "" && p.done > 0:
		return human.Plural(int(p.done), p.thing)
	case p.thing == "" && p.total > 0:
		return human.Size(p.done) + " of " + human.Size(p.total)
	case p.thing == "" && p.done > 0:
		return human.Size(p.done)
	}
	return ""
}
