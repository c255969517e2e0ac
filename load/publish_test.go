package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sequins/blocks"
	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// Whatever becomes of the files after they were read, and although every one of them was read whole, nothing
// of the mixture is published.
func TestChangedAfterReading(t *testing.T) {
	rewrite := func(path string) error { // with another time
		data, err := os.ReadFile(path)
		later := time.Now().Add(time.Second)
		return errors.Join(err, os.WriteFile(path, data, 0o644), os.Chtimes(path, later, later))
	}
	for name, change := range map[string]func(dir string) error{
		"overwritten":   func(dir string) error { return rewrite(filepath.Join(dir, "part-r-00001")) },
		"appended":      func(dir string) error { return os.Truncate(filepath.Join(dir, "part-r-00000"), 1<<20) },
		"one more":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "part-r-00009"), nil, 0o644) },
		"one less":      func(dir string) error { return os.Remove(filepath.Join(dir, "part-r-00002")) },
		"no first":      func(dir string) error { return os.Remove(filepath.Join(dir, "part-r-00000")) },
		"not done":      func(dir string) error { return os.Remove(filepath.Join(dir, "_SUCCESS")) },
		"another first": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, partitioner := range []string{"hadoop", "string"} {
				w := newWorld(t)
				w.write(cut(shard.Hadoop, 3, keys(300)...), sequencefiles.WriterOptions{})
				w.put("_SUCCESS", nil)
				opts := Options{Partitioner: partitioner, RequireSuccess: true}
				plan := check(newLoader(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
				var read sync.WaitGroup
				read.Add(len(plan.Files))
				var once sync.Once
				src := meddler{w.src, func(name string, f io.ReadCloser) io.ReadCloser {
					if name == source.SuccessFile {
						return f
					}
					return body{ReadCloser: f, close: func() {
						read.Done()
						read.Wait() // the last of them has been read to its end
						once.Do(func() {
							if err := change(filepath.Join(w.root, "db", "1")); err != nil {
								t.Error(err)
							}
						})
					}}
				}}
				opts.Workers = len(plan.Files) // each file is closed by a goroutine of its own
				err := newLoader(src, w.store, nil, opts).Load(t.Context(), plan, all(plan))
				if !errors.Is(err, source.ErrChanged) || Outcome(err) != "source changed" || !strings.Contains(err.Error(), "db/1") {
					t.Errorf("%s: %v", partitioner, err)
				}
				if complete := check(w.dir().Complete())(t); len(complete) > 0 {
					t.Errorf("%s: published %v", partitioner, complete)
				}
				w.clean()
			}
		})
	}
}

// counted is a source that counts how often a version is listed.
type counted struct {
	source.Source
	lists *int
}

func (c counted) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	*c.lists++
	return c.Source.Contents(ctx, db, version)
}

// Blocks are published while others are made, and the source is listed once a second at most.
func TestPublishedMeanwhile(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 20, keys(400)...)
	w.write(files, sequencefiles.WriterOptions{})
	plan := check(newLoader(w.src, w.store, nil, Options{Partitioner: "hadoop"}).Plan(t.Context(), "db", "1"))(t)
	dir := check(w.store.Create("db", plan.Manifest()))(t)
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		l := newLoader(counted{w.src, &lists}, nil, nil, Options{Throttle: 20 * time.Millisecond, Workers: 1})
		to := dir.Staging()
		var at []time.Duration
		var published []int
		began := time.Now()
		err := l.LoadInto(t.Context(), plan, Target{Staging: to, Want: all(plan), Publish: func(partitions []int) error {
			at = append(at, time.Since(began))
			published = append(published, partitions...)
			return dir.Publish(to, partitions...)
		}})
		expect.NoError(t, err)
		took := time.Since(began)
		slices.Sort(published)
		if !slices.Equal(published, all(plan)) {
			t.Errorf("published %v", published)
		}
		if seconds := int(took / verifyPeriod); len(at) < seconds || lists > seconds+1 || seconds < 5 {
			t.Errorf("in %v the source was listed %d times, and blocks were published at %v", took, lists, at)
		}
	})
	w.compare(plan, model(files, shard.Hadoop, 20), all(plan))
}

// A failure publishes what is finished, and a publication that fails ends the load.
func TestPublicationFails(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.Hadoop, 3, keys(300)...), sequencefiles.WriterOptions{})
	l := newLoader(w.src, nil, nil, Options{})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	dir := check(w.store.Create("db", plan.Manifest()))(t)
	broken := errors.New("broken")
	err := l.LoadInto(t.Context(), plan, Target{Staging: dir.Staging(), Want: all(plan), Publish: func([]int) error { return broken }})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	w.clean()
}

// A load that has left out more records than it may keeps nothing, so that the next one counts all of them again.
func TestTooManyLeftOut(t *testing.T) {
	w := newWorld(t)
	var files []data
	for i := range 4 {
		f := data{name: fmt.Sprintf("part-%05d", i), records: []rec{{key: fmt.Sprint("key", i), value: "v"}}}
		for j := range 2 {
			f.records = append(f.records, rec{key: strings.Repeat(fmt.Sprint(j), blocks.MaxKey+1), value: "v"})
		}
		files = append(files, f)
	}
	w.write(files, sequencefiles.WriterOptions{})
	for _, partitioner := range []string{"string", "auto"} {
		for range 3 {
			l := newLoader(w.src, w.store, nil, Options{Partitioner: partitioner, MaxRecordErrors: 5, Workers: 1})
			plan := check(l.Plan(t.Context(), "db", "1"))(t)
			if err := l.Load(t.Context(), plan, all(plan)); err == nil || !strings.Contains(err.Error(), "5 records were left out") {
				t.Fatalf("partitioner %s: %v", partitioner, err)
			}
			if left := check(newest(t, w.store).Complete())(t); len(left) > 0 {
				t.Errorf("partitioner %s: partitions %v are kept", partitioner, left)
			}
		}
	}
	var p Progress
	l := newLoader(w.src, w.store, &p, Options{MaxRecordErrors: 8})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	if err := l.Load(t.Context(), plan, all(plan)); err != nil || p.Snapshot().LeftOut != 8 {
		t.Errorf("%v, %d left out", err, p.Snapshot().LeftOut)
	}
}
