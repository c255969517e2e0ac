package reads_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/status"
	"sequins/reads"
	"sequins/test/contents"
	"sequins/version"
)

// hot is a reader of one local db.
func hot(t *testing.T, o reads.Options) (*reads.Reader, *reads.Read) {
	t.Helper()
	set := setOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1}, [2]string{"k", "value"})
	rd := reads.New(catalog{"db": set}, o)
	t.Cleanup(rd.Stop)
	r := rd.NewRead()
	return rd, &r
}

// readTimes reads a key n times for each sample.
func readTimes(r *reads.Read, n int, key string) {
	for range n * reads.SampleEvery {
		readKey(r, key)
	}
}

// Hot keys have hashes that tell them apart and nothing else, which are others in another process and for another db.
func TestHotKeysAreHashed(t *testing.T) {
	hashes := map[string]bool{}
	for range 2 {
		rd, r := hot(t, reads.Options{})
		for range 100 { // in turns, as a key is decayed less than those before it
			readTimes(r, 3, "k")
			readTimes(r, 1, "absent")
		}
		top := rd.HotKeys("db", time.Now())
		if len(top) != 2 || math.Abs(top[0].Share-0.75) > 0.15 || math.Abs(top[0].Share+top[1].Share-1) > 0.001 || top[0].PerSecond <= 0 {
			t.Fatalf("%+v", top)
		}
		for _, k := range top {
			if k.Key != "" || !regexp.MustCompile("^[0-9a-f]{16}$").MatchString(k.Hash) || hashes[k.Hash] {
				t.Errorf("%+v", k)
			}
			hashes[k.Hash] = true
		}
		again := rd.HotKeys("db", time.Now())
		if again[0].Hash != top[0].Hash || again[1].Hash != top[1].Hash {
			t.Errorf("%+v\n%+v", top, again)
		}
		if rd.HotKeys("other", time.Now()) != nil {
			t.Error("there are hot keys of no db")
		}
	}
}

// With ShowKeys the keys are shown, escaped and cut, as long as it is set.
func TestHotKeysAreShown(t *testing.T) {
	rd, r := hot(t, reads.Options{})
	read := func() {
		for range 50 {
			for _, k := range []string{"k", "<script>\x1b[2J\n\u202e\xff", strings.Repeat("x", 200)} {
				readTimes(r, 1, k)
			}
		}
	}
	names := func() map[string]bool {
		all := map[string]bool{}
		for _, k := range rd.HotKeys("db", time.Now()) {
			all[fmt.Sprint(k.Key, k.Truncated)] = true
		}
		return all
	}
	hidden := map[string]bool{"false": true}
	read()
	if diff := cmp.Diff(hidden, names()); diff != "" {
		t.Error(diff)
	}
	rd.SetShowKeys(true)
	read()
	want := map[string]bool{"kfalse": true, "%3Cscript%3E%1B%5B2J%0A%E2%80%AE%FFfalse": true, strings.Repeat("x", 128) + "true": true}
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Error(diff)
	}
	rd.SetShowKeys(false)
	if diff := cmp.Diff(hidden, names()); diff != "" {
		t.Error(diff)
	}
}

// Each key of a batch counts; reads of other nodes and explanations do not.
func TestWhatCountsAsHot(t *testing.T) {
	rd, r := hot(t, reads.Options{ShowKeys: true})
	for range 1000 {
		r.Begin(time.Now())
		r.DoBatch(&reads.Query{DB: []byte("db")}, [][]byte{[]byte("a"), []byte("b"), []byte("a"), nil})
		r.Release()
		r.Begin(time.Now())
		r.Do(&reads.Query{DB: []byte("db"), Key: []byte("peer's"), Version: []byte("true")})
		r.Release()
		r.Begin(time.Now())
		r.DoBatch(&reads.Query{DB: []byte("db"), Version: []byte("true")}, [][]byte{[]byte("peer's")})
		r.Release()
		r.Begin(time.Now())
		r.Record()
		r.Do(&reads.Query{DB: []byte("db"), Key: []byte("explained")})
		r.Release()
	}
	shares := map[string]float64{}
	for _, k := range rd.HotKeys("db", time.Now()) {
		shares[k.Key] = k.Share
	}
	if len(shares) != 3 || math.Abs(shares["a"]-0.5) > 0.25 || math.Abs(shares["b"]-0.25) > 0.2 || math.Abs(shares[""]-0.25) > 0.2 {
		t.Errorf("%v", shares)
	}
}

// The number of dbs whose keys are counted is limited, and removed dbs make room for others.
func TestSketchesAreBounded(t *testing.T) {
	c := catalog{}
	for i := range reads.MaxSketches + 10 {
		c[fmt.Sprint(i)] = setOf(t, version.Info{DB: fmt.Sprint(i), Content: contents.Of("v1")})
	}
	rd := reads.New(c, reads.Options{})
	defer rd.Stop()
	r := rd.NewRead()
	counted := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			for range 20 * reads.SampleEvery {
				r.Begin(time.Now())
				r.Do(&reads.Query{DB: []byte(fmt.Sprint(i)), Key: []byte("k")})
				r.Release()
			}
			if top := rd.HotKeys(fmt.Sprint(i), time.Now()); len(top) == 1 && cmp.Equal(top[0], status.HotKey{Hash: top[0].Hash, Share: 1, PerSecond: top[0].PerSecond}) {
				n++
			}
		}
		return n
	}
	if n := counted(0, reads.MaxSketches+5); n != reads.MaxSketches {
		t.Errorf("the keys of %d dbs are counted", n)
	}
	delete(c, "7")
	if n := counted(reads.MaxSketches+5, reads.MaxSketches+10); n != 1 {
		t.Errorf("after a db has gone, the keys of %d more are counted", n)
	}
}
