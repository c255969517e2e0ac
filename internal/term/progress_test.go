package term

import (
	"bytes"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A pipe gets nothing.
func TestProgressOnAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "reading", nil)
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
		var done atomic.Int64
		p := NewProgress(&out, "reading", Bytes(func() (int64, int64) { return done.Load(), 1000 }))
		p.start() // as on a terminal
		time.Sleep(patience - drawPeriod/2)
		synctest.Wait()
		p.Print(func() { // under its lock
			if out.Len() > 0 {
				t.Errorf("%q", &out)
			}
		})
		for _, n := range []int64{0, 500, 2000} { // the file has grown
			done.Store(n)
			time.Sleep(drawPeriod)
			synctest.Wait()
			if n == 500 {
				p.Print(func() { out.WriteString("bad: x\n") })
			}
		}
		p.Stop()
		time.Sleep(time.Minute)
		want := clearLine + NoWrap + "reading: 0 B of 1000 B" + Wrap +
			clearLine + NoWrap + "reading: 500 B of 1000 B, 416 B a second, about 1 s left" + Wrap +
			clearLine + "bad: x\n" +
			clearLine + NoWrap + "reading: 2.0 KiB of 1000 B, 1.4 KiB a second" + Wrap + clearLine
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Without an amount, the line says what is being done.
func TestProgressWithoutAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "asking", nil)
		p.start()
		time.Sleep(patience)
		synctest.Wait()
		p.Stop()
		if got, want := out.String(), clearLine+NoWrap+"asking"+Wrap+clearLine; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
