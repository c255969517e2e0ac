//go:build integration

package hdfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/load"
	"sequins/source"
	"sequins/source/hdfs"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/noise"
	"sequins/test/sequencefiles"
	"sequins/test/speed"
)

// A dataset is a version of SequenceFiles whose values do not compress.
type dataset struct {
	files, records, size int // of each file, of each value
}

func (s dataset) key(file, i int) string { return fmt.Sprintf("key-%03d-%06d", file, i) }

// value is cheap to make and different for each record.
func (s dataset) value(file, i int) []byte {
	b := noise.Random(file, s.size)
	return append(b[i%s.size:], fmt.Sprint(file, i)...)
}

func (s dataset) write(t *testing.T, c *cluster, dir string) {
	t.Helper()
	for file := range s.files {
		var b bytes.Buffer
		w, err := sequencefiles.NewWriter(&b, sequencefiles.WriterOptions{})
		expect.NoError(t, err)
		for i := range s.records {
			expect.NoError(t, w.Append([]byte(s.key(file, i)), s.value(file, i)))
		}
		expect.NoError(t, w.Close())
		c.write(t, fmt.Sprintf("%s/part-%05d", dir, file), b.Bytes())
	}
	c.write(t, path.Join(dir, "_SUCCESS"), nil)
}

// A loading is a load under way.
type loading struct {
	set      dataset
	store    *store.Store
	plan     *load.Plan
	progress load.Progress
	done     chan error
}

// start loads db/1 of a source, at so many bytes a second.
func (s dataset) load(t *testing.T, src source.Source, bandwidth float64) *loading {
	t.Helper()
	local, err := store.Open(t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(func() { local.Close() })
	l := &loading{set: s, store: local, done: make(chan error, 1)}
	loader := load.New(src, &l.progress, load.Options{Bandwidth: rate.NewLimiter(rate.Limit(bandwidth), 64<<10), RequireSuccess: true})
	if l.plan, err = loader.Plan(t.Context(), "db", "1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		var all []int
		for p := range l.plan.Partitions {
			all = append(all, p)
		}
		l.done <- speed.Load(ctx, loader, local, l.plan, all)
	}()
	return l
}

// reach waits until a part of the bytes has been read, and fails if that is all.
func (l *loading) reach(t *testing.T, part float64) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("%v of the load is done", part), func() bool {
		p := l.progress.Snapshot()
		return p.Bytes > 0 && float64(p.BytesDone) >= part*float64(p.Bytes)
	})
	if p := l.progress.Snapshot(); p.BytesDone == p.Bytes {
		t.Error("the load was over before anything happened to it")
	}
}

// finish waits for the end of the load and looks at every record.
func (l *loading) finish(t *testing.T) {
	t.Helper()
	select {
	case err := <-l.done:
		expect.NoError(t, err)
	case <-time.After(2 * time.Minute):
		t.Fatalf("the load does not end: %+v", l.progress.Snapshot())
	}
	dir, err := l.store.Dir("db", content.Input{Name: "1", Hash: l.plan.Input})
	expect.NoError(t, err)
	found := map[string]bool{}
	for p := range l.plan.Partitions {
		l.compare(t, dir.BlockPath(p), found)
	}
	if want := l.set.files * l.set.records; len(found) != want {
		t.Errorf("%d records, want %d", len(found), want)
	}
}

func (l *loading) compare(t *testing.T, block string, found map[string]bool) {
	t.Helper()
	r, err := blocks.Open(block)
	expect.NoError(t, err)
	defer r.Close()
	it := r.Iter(nil, nil)
	for it.Next() {
		var file, i int
		if _, err := fmt.Sscanf(string(it.Key()), "key-%03d-%06d", &file, &i); err != nil {
			t.Fatalf("key %q: %v", it.Key(), err)
		}
		v := it.Value()
		got, err := io.ReadAll(v.Section(0, v.Len()))
		if err != nil || !bytes.Equal(got, l.set.value(file, i)) {
			t.Fatalf("%s has a value of %d bytes that is not its, %v", it.Key(), len(got), err)
		}
		found[string(it.Key())] = true
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
}

// testDatanodeKilled: with each block on two of three datanodes, one may be killed in the middle of a load.
func testDatanodeKilled(t *testing.T, c *cluster) {
	d := c.newDir()
	set := dataset{files: 8, records: 1000, size: 1000}
	set.write(t, c, d.root+"/db/1")
	l := set.load(t, d.open(t, d.root, func(o *hdfs.Options) { o.Timeout = 2 * time.Second }), 2<<20)
	l.reach(t, 0.2)
	c.Do(t, "dfs killdn i=0")
	defer c.Do(t, "dfs restartdn")
	l.finish(t)
}
