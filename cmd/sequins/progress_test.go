package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A pipe gets a line every ten seconds, and none for work that ends sooner.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, 100<<20)
		for range 250 {
			p.add(400 << 10)
			time.Sleep(100 * time.Millisecond)
		}
		p.clear()
		want := "39%, 39.5 MiB of 100.0 MiB, 3.9 MiB a second, about 15 s left\n" +
			"79%, 78.5 MiB of 100.0 MiB, 3.9 MiB a second, about 5 s left\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// On a terminal it is one line that is drawn over.
func TestProgressBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, 1000)
		p.bar, p.period = true, barPeriod
		p.add(10)
		time.Sleep(barPeriod)
		p.add(490)
		time.Sleep(barPeriod)
		p.add(5000) // a file that has grown
		p.clear()
		want := clearLine + "[" + strings.Repeat("#", 15) + strings.Repeat(" ", 15) + "] 50%, 500 B of 1000 B" +
			clearLine + "[" + strings.Repeat("#", 30) + "] 100%, 5.4 KiB of 1000 B" + clearLine
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	var none *progress
	none.add(1)
	none.clear()
}
