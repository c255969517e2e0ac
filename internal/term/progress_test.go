package term

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A pipe gets nothing.
func TestProgressOnAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "reading", 100<<20)
		p.Add(50 << 20)
		time.Sleep(time.Minute)
		p.Print(func() { out.WriteString("bad: x\n") })
		p.Stop()
		if got := out.String(); got != "bad: x\n" {
			t.Errorf("%q", got)
		}
	})
}

// On a terminal it is one line that is drawn over, and nothing for work that ends within a second.
func TestProgressOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "reading", 0)
		p.start() // as on a terminal
		time.Sleep(patience - drawPeriod/2)
		synctest.Wait()
		p.Print(func() { // under its lock
			if out.Len() > 0 {
				t.Errorf("%q", &out)
			}
		})
		time.Sleep(drawPeriod)
		synctest.Wait()
		p.Follow(func() (done, total int64) { return 500, 1000 })
		time.Sleep(drawPeriod)
		synctest.Wait()
		p.Print(func() { out.WriteString("bad: x\n") })
		p.Follow(nil)
		p.Set(2000, 1000) // a file that has grown
		time.Sleep(drawPeriod)
		synctest.Wait()
		p.Stop()
		time.Sleep(time.Minute)
		want := clearLine + NoWrap + "reading" + Wrap +
			clearLine + NoWrap + "reading: 500 B of 1000 B, 416 B a second, about 1 s left" + Wrap +
			clearLine + "bad: x\n" +
			clearLine + NoWrap + "reading: 2.0 KiB of 1000 B, 1.4 KiB a second" + Wrap + clearLine
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	var none *Progress
	none.Add(1)
	none.Set(1, 2)
	none.Print(func() {})
	none.Stop()
}

func TestLines(t *testing.T) {
	now := time.Now()
	for want, p := range map[string]*Progress{
		"asking":                     {what: "asking", thing: "node"},
		"listing: 3 versions":        {what: "listing", thing: "version", done: 3},
		"reading: 3 B, 3 B a second": {what: "reading", done: 3},
		"comparing: 1 of 4 partitions, about 3 s left": {what: "comparing", thing: "partition", done: 1, total: 4},
	} {
		p.begun = now.Add(-time.Second)
		if got := p.line(now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
