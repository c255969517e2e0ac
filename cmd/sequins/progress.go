package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sequins/internal/human"
)

// progress shows how far long work is, in bytes: on a terminal as a bar that is drawn over, elsewhere as a
// line now and then, so that work that is soon done prints nothing. A nil progress shows nothing.
type progress struct {
	out    io.Writer
	bar    bool
	total  int64 // bytes
	done   int64
	start  time.Time
	shown  time.Time
	period time.Duration
}

const (
	barPeriod  = 100 * time.Millisecond
	linePeriod = 10 * time.Second
	barWidth   = 30
	clearLine  = "\r\x1b[K"
)

// newProgress is the progress of work on so many bytes that begins now.
func newProgress(out io.Writer, total int64) *progress {
	p := &progress{out: out, bar: isTerminal(out), total: total, start: time.Now(), period: linePeriod}
	if p.bar {
		p.period = barPeriod
	}
	p.shown = p.start
	return p
}

// add takes note of bytes that have been worked on.
func (p *progress) add(bytes int64) {
	if p == nil {
		return
	}
	p.done += bytes
	now := time.Now()
	if now.Sub(p.shown) < p.period {
		return
	}
	p.shown = now
	text := p.text(now)
	if p.bar {
		full := int(barWidth * p.part())
		text = clearLine + "[" + strings.Repeat("#", full) + strings.Repeat(" ", barWidth-full) + "] " + text
	} else {
		text += "\n"
	}
	_, _ = io.WriteString(p.out, text) // where it cannot be shown, nobody looks
}

// part is how much has been done, between 0 and 1.
func (p *progress) part() float64 {
	if p.total <= 0 {
		return 1
	}
	return min(1, float64(p.done)/float64(p.total))
}

// text is how far the work is, in words: how much, how fast, how long it will take.
func (p *progress) text(now time.Time) string {
	took := now.Sub(p.start)
	text := fmt.Sprintf("%.0f%%, %s of %s", 100*p.part(), size(p.done), size(p.total))
	if took < time.Second || p.done == 0 {
		return text
	}
	text += fmt.Sprintf(", %s a second", size(int64(float64(p.done)/took.Seconds())))
	if left := p.total - p.done; left > 0 {
		text += ", about " + human.Duration(time.Duration(float64(took)*float64(left)/float64(p.done))) + " left"
	}
	return text
}

// clear makes room for a line about something else. The bar comes back with what is done next.
func (p *progress) clear() {
	if p != nil && p.bar {
		_, _ = io.WriteString(p.out, clearLine)
	}
}
