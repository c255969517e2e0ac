package node

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// stored is a file of the version of fruit in the store.
func (f *fixture) stored(name string) string {
	return filepath.Join(f.dir("fruit", "1"), name)
}

// known loads fruit in three partitions, and stops the node.
func (f *fixture) known() {
	f.t.Helper()
	f.put("fruit", "1", 3, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.eventually("it is complete", func() bool { return len(r.onNode("fruit", "1").Partitions) == 3 })
	r.stop()
}

// rot changes a byte behind the pages of a block, as a disk does: the file has its length and time afterwards.
func (f *fixture) rot(block string) {
	f.t.Helper()
	st, err := os.Stat(f.stored(block))
	expect.NoError(f.t, err)
	b, err := os.ReadFile(f.stored(block))
	expect.NoError(f.t, err)
	b[len(b)-100] ^= 1
	expect.NoError(f.t, os.WriteFile(f.stored(block), b, 0o644))
	expect.NoError(f.t, os.Chtimes(f.stored(block), time.Time{}, st.ModTime()))
}

// ask gets every key, and returns how many were answered with 5xx; the others must be right.
func (r *running) ask() (failed int) {
	r.f.t.Helper()
	for _, key := range fruit {
		switch got := r.get("/fruit/" + key); {
		case got.status >= http.StatusInternalServerError:
			failed++
		case got.body != key+" of 1":
			r.f.t.Errorf("%s: %+v", key, got)
		}
	}
	return failed
}

// mended waits until a block has been loaded again.
func (r *running) mended() {
	r.f.t.Helper()
	r.eventually("it is mended", func() bool { return r.ask() == 0 })
	if n := r.damaged("fruit"); n != 1 {
		r.f.t.Errorf("%v damaged blocks are counted", n)
	}
	aside, err := filepath.Glob(r.f.stored("*.corrupt"))
	if err != nil || len(aside) != 1 {
		r.f.t.Errorf("set aside: %q, %v", aside, err)
	}
}

// TestManyBlocksDamagedAtStart: all of many damaged blocks are found at the start, also without the source.
func TestManyBlocksDamagedAtStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = 100
	f.put("fruit", "1", n, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	for i := range n {
		f.rot(fmt.Sprintf("%05d.block", i))
	}
	f.source.down.Store(true)
	r = f.run()
	r.eventually("all are found", func() bool { return r.damaged("fruit") == n })
}

// TestBlockDamagedForGood: without the source the other blocks are served.
func TestBlockDamagedForGood(t *testing.T) {
	f := newFixture(t)
	f.known()
	f.rot("00001.block")
	f.damage("fruit", "1", "part-r-00001")
	r := f.run()
	r.serves("fruit", "1")
	r.eventually("the reload fails", func() bool { r.ask(); return r.onNode("fruit", "1").Error != "" })
	if n := r.ask(); n == 0 || n == len(fruit) {
		t.Errorf("%d of %d keys failed", n, len(fruit))
	}
}

// TestDamagedAtStart: damage behind the pages is found at the start, before any request.
func TestDamagedAtStart(t *testing.T) {
	for name, spoil := range map[string]func(f *fixture){
		"a byte less": func(f *fixture) {
			st, err := os.Stat(f.stored("00001.block"))
			expect.NoError(t, err)
			expect.NoError(t, os.Truncate(f.stored("00001.block"), st.Size()-1))
			expect.NoError(t, os.Chtimes(f.stored("00001.block"), time.Time{}, st.ModTime()))
		},
		"a byte changed": func(f *fixture) { f.rot("00001.block") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.known()
			spoil(f)
			r := f.run()
			if n := r.damaged("fruit"); n != 1 {
				t.Errorf("%v damaged blocks are counted at the start", n)
			}
			r.serves("fruit", "1")
			r.eventually("it is complete", func() bool { return len(r.onNode("fruit", "1").Partitions) == 3 })
			r.mended()
		})
	}
	t.Run("no block", func(t *testing.T) {
		f := newFixture(t)
		f.known()
		expect.NoError(t, os.Remove(f.stored("00001.block")))
		r := f.run()
		r.serves("fruit", "1")
		r.eventually("it is complete", func() bool { return len(r.onNode("fruit", "1").Partitions) == 3 })
		if n := r.ask(); n > 0 || r.damaged("fruit") > 0 {
			t.Errorf("%d keys failed; %v damaged blocks", n, r.damaged("fruit"))
		}
	})
}

// TestBlockThatCannotBeOpened: a block that is there and cannot be opened, without being damaged, is the reason that is told; and it is read as soon as it
// can be opened.
func TestBlockThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known()
	block, elsewhere := f.stored("00001.block"), filepath.Join(t.TempDir(), "block")
	expect.NoError(t, os.Rename(block, elsewhere))
	expect.NoError(t, os.Symlink("00001.block", block)) // to itself
	r := f.run()
	r.eventually("it says why", func() bool {
		return strings.Contains(r.onNode("fruit", "1").Error, "too many levels of symbolic links")
	})
	expect.NoError(t, os.Rename(elsewhere, block))
	r.Refresh()
	r.eventually("it is read", func() bool { return r.ask() == 0 && r.onNode("fruit", "1").Error == "" })
}
