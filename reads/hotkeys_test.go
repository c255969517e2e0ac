package reads_test

import (
	"fmt"
	"math"
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
	read()
	if top := rd.HotKeys("db", time.Now()); top != nil {
		t.Errorf("%+v", top)
	}
	rd.SetShowKeys(true)
	read()
	got := map[string]bool{}
	for _, k := range rd.HotKeys("db", time.Now()) {
		got[k.Key] = k.PerSecond > 0 && math.Abs(k.Share-0.33) < 0.15
	}
	want := map[string]bool{"k": true, "%3Cscript%3E%1B%5B2J%0A%E2%80%AE%FF": true, strings.Repeat("x", 128): true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if rd.HotKeys("other", time.Now()) != nil {
		t.Error("there are hot keys of no db")
	}
	rd.SetShowKeys(false)
	if top := rd.HotKeys("db", time.Now()); top != nil {
		t.Errorf("%+v", top)
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

// readKey reads a key of db.
func readKey(r *reads.Read, key string) reads.Outcome {
	r.Begin(time.Now())
	defer r.Release()
	return r.Do(&reads.Query{DB: []byte("db"), Key: []byte(key)})
}
