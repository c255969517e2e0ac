package reads_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// Only the last samples count, and only for some minutes.
func TestOldSamplesDoNotCount(t *testing.T) {
	rd, r := hot(t, reads.Options{ShowKeys: true})
	readTimes(r, 2*reads.MaxSamples, "k")
	readTimes(r, 2*reads.MaxSamples, "other")
	top := rd.HotKeys("db", time.Now())
	if len(top) != 1 || top[0].Key != "other" || top[0].Share != 1 {
		t.Errorf("%+v", top)
	}
	if top := rd.HotKeys("db", time.Now().Add(time.Hour)); top != nil {
		t.Errorf("an hour later: %+v", top)
	}
}

// The keys that are returned are those with the most reads, the first most of all.
func TestTopKeys(t *testing.T) {
	rd, r := hot(t, reads.Options{ShowKeys: true})
	for range 12 {
		for i := range 15 {
			readTimes(r, 1, fmt.Sprint("few ", i))
		}
		readTimes(r, 25, "most")
	}
	top := rd.HotKeys("db", time.Now())
	if len(top) != 10 || top[0].Key != "most" || top[0].Share < 0.4 || top[9].Share > 0.1 {
		t.Errorf("%+v", top)
	}
}
