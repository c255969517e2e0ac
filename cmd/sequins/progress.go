package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sequins/internal/human"
)

// progress shows the progress of work in bytes: on a terminal as a bar, elsewhere as occasional lines,
// so that short work prints nothing. A nil progress shows nothing.
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

// newProgress returns the progress of work on total bytes that starts now.
func newProgress(out io.Writer, total int64) *progress {
	p := &progress{out: out, bar: isTerminal(out), total: total, start: time.Now(), period: linePeriod}
	if p.bar {
		p.period = barPeriod
	}
	p.shown = p.start
	return p
}

// add counts processed bytes.
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
	_, _ = io.WriteString(p.out, text) // errors are ignored
}

// part returns the processed fraction, between 0 and 1.
func (p *progress) part() float64 {
	if p.total <= 0 {
		return 1
	}
	return min(1, float64(p.done)/float64(p.total))
}

// text describes the progress: amount, rate and remaining time.
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

// clear removes the bar before other output. The next add draws it again.
func (p *progress) clear() {
	if p != nil && p.bar {
		_, _ = io.WriteString(p.out, clearLine)
	}
}
