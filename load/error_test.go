package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sequins/blocks"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

func TestMisplacedRecord(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 3, keys(2000)...)
	stray := "zzz" + strings.Repeat("\x00ü", 50)
	home := shard.Hadoop.Partition([]byte(stray), 3)
	other := (home + 1) % 3
	files[other].records = append(files[other].records, rec{key: stray, value: "v"})
	w.write(files, sequencefiles.WriterOptions{})

	l := newLoader(w.src, w.store, nil, Options{})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	err := l.Load(t.Context(), plan, all(plan))
	var wrong *PartitionError
	if !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	if wrong.Want != other || wrong.Got != home || wrong.Partitioner != shard.Hadoop || !strings.HasPrefix(stray, string(wrong.Key)) || !wrong.Clipped || wrong.Offset == 0 {
		t.Errorf("%+v", wrong)
	}
	for _, s := range []string{
		files[other].name, fmt.Sprintf("partition %d", home), fmt.Sprintf("partition %d", other),
		`zzz\x00ü`, `…`, `"hadoop"`, "version 1 of db",
	} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v does not say %s", err, s)
		}
	}
	if len(err.Error()) > 800 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	w.clean()

	// All files are read then.
	plan = w.load(Options{Partitioner: "string"})
	w.compare(plan, model(files, shard.String, 3), all(plan))
}

// Whatever is cut off a file, and wherever, the error says which file it is
// and where it ends.
func TestTruncatedFiles(t *testing.T) {
	records := func() (all []rec) {
		for _, k := range keys(50) {
			all = append(all, rec{key: k, value: strings.Repeat(k, 3)})
		}
		return all
	}()
	formats := []struct {
		name    string
		content []byte
		is      error
	}{
		{"part-00000", sequenceFile(t, records, sequencefiles.WriterOptions{}), sequencefile.ErrCorrupt},
		{"part-00000", sequenceFile(t, records, sequencefiles.WriterOptions{Compression: sequencefiles.Block}), sequencefile.ErrCorrupt},
		{"part-00000.spl", sparkeyLog(t, records), sparkey.ErrCorrupt},
	}
	for i, f := range formats {
		for _, cut := range []int{3, len(f.content) / 3, len(f.content) - 1} {
			w := newWorld(t)
			w.put(f.name, f.content[:cut])
			l := newLoader(w.src, w.store, nil, Options{})
			plan := check(l.Plan(t.Context(), "db", "1"))(t) // of one file there is nothing to find out
			err := l.Load(t.Context(), plan, []int{0})
			if !errors.Is(err, f.is) || !strings.Contains(err.Error(), f.name) || !strings.Contains(err.Error(), "offset") {
				t.Errorf("format %d, %d of %d bytes: %v", i, cut, len(f.content), err)
			}
			w.clean()
			if got := check(w.dir().Complete())(t); len(got) > 0 {
				t.Errorf("format %d, %d of %d bytes: complete: %v", i, cut, len(f.content), got)
			}
		}
	}
}

// A file cut off between two records looks whole; but it was listed longer.
func TestChangedFiles(t *testing.T) {
	for _, partitioner := range []string{"auto", "string"} {
		for name, change := range map[string]func(whole []byte) []byte{
			"shorter": func(whole []byte) []byte {
				return sequenceFile(t, cut(shard.String, 1, keys(90)...)[0].records, sequencefiles.WriterOptions{SyncSeed: "x"})
			},
			"longer": func(whole []byte) []byte {
				return sequenceFile(t, cut(shard.String, 1, keys(110)...)[0].records, sequencefiles.WriterOptions{SyncSeed: "x"})
			},
		} {
			w := newWorld(t)
			w.write(cut(shard.String, 1, keys(100)...), sequencefiles.WriterOptions{SyncSeed: "x"})
			l := newLoader(w.src, w.store, nil, Options{Partitioner: partitioner})
			plan := check(l.Plan(t.Context(), "db", "1"))(t)
			w.put("part-r-00000", change(nil))
			err := l.Load(t.Context(), plan, []int{0})
			if !errors.Is(err, source.ErrChanged) || !strings.Contains(err.Error(), "part-r-00000") {
				t.Errorf("%s, %s: %v", partitioner, name, err)
			}
		}
	}
}

func TestKeyTooLong(t *testing.T) {
	for _, partitioner := range []string{"auto", "string"} {
		w := newWorld(t)
		files := []data{{"a", []rec{{key: strings.Repeat("k", blocks.MaxKey), value: "v"}}}}
		w.write(files, sequencefiles.WriterOptions{})
		plan := w.load(Options{Partitioner: partitioner})
		w.compare(plan, model(files, shard.String, 1), []int{0})

		w.newStore()
		files[0].records[0].key += "k"
		w.write(files, sequencefiles.WriterOptions{})
		l := newLoader(w.src, w.store, nil, Options{Partitioner: partitioner})
		plan = check(l.Plan(t.Context(), "db", "1"))(t)
		err := l.Load(t.Context(), plan, []int{0})
		if !errors.Is(err, blocks.ErrTooLarge) || !strings.Contains(err.Error(), "db/1/a: offset") || len(err.Error()) > 500 {
			t.Errorf("%.500v", err)
		}
	}
}

// meddler is a source whose files do what a test wants.
type meddler struct {
	source.Source
	open func(name string, f io.ReadCloser) io.ReadCloser
}

func (m meddler) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	f, err := m.Source.Open(ctx, db, version, file, o)
	if err != nil {
		return nil, err
	}
	return m.open(file.Name, f), nil
}

// body is a file whose Read and Close a test has its hands on.
type body struct {
	io.ReadCloser
	read  func(p []byte) (int, error) // instead of Read, if not nil
	close func()                      // before Close, if not nil
}

func (b body) Read(p []byte) (int, error) {
	if b.read != nil {
		return b.read(p)
	}
	return b.ReadCloser.Read(p)
}

func (b body) Close() error {
	if b.close != nil {
		b.close()
	}
	return b.ReadCloser.Close()
}

var errNetwork = errors.New("the network is down")

func TestSourceFails(t *testing.T) {
	for _, partitioner := range []string{"hadoop", "string"} {
		w := newWorld(t)
		w.write(cut(shard.Hadoop, 4, keys(50_000)...), sequencefiles.WriterOptions{})
		var opened, closed atomic.Int64
		src := meddler{w.src, func(name string, f io.ReadCloser) io.ReadCloser {
			opened.Add(1)
			b := body{ReadCloser: f, close: func() { closed.Add(1) }}
			if name == "part-r-00002" {
				left := 100_000
				b.read = func(p []byte) (int, error) {
					if left <= 0 {
						return 0, errNetwork
					}
					n, err := f.Read(p[:min(len(p), left)])
					left -= n
					return n, err
				}
			}
			return b
		}}
		l := newLoader(src, w.store, nil, Options{Partitioner: partitioner, Workers: 2})
		plan := check(l.Plan(t.Context(), "db", "1"))(t)
		err := l.Load(t.Context(), plan, all(plan))
		if !errors.Is(err, errNetwork) || !strings.Contains(err.Error(), "part-r-00002") {
			t.Errorf("%s: %v", partitioner, err)
		}
		if opened.Load() == 0 || opened.Load() != closed.Load() {
			t.Errorf("%s: opened %d files, closed %d", partitioner, opened.Load(), closed.Load())
		}
		w.clean()
	}
}

// Wherever a load is cancelled, it ends soon, leaves nothing temporary, and
// what it has published is whole. That its goroutines are gone, TestMain sees.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	files := cut(shard.Hadoop, 4, keys(40_000)...)
	slices.Reverse(files[1].records)
	w.write(files, sequencefiles.WriterOptions{})
	for _, partitioner := range []string{"hadoop", "string"} {
		by := check(shard.ParsePartitioner(partitioner))(t)
		want := model(files, by, 4)
		finished := false
		for reads := 0; !finished; reads += 1 + reads/8 {
			w.newStore()
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan struct{}, reads+1)
			for range reads {
				left <- struct{}{}
			}
			src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
				return body{ReadCloser: f, read: func(p []byte) (int, error) {
					select {
					case <-left:
					default:
						cancel()
					}
					return f.Read(p)
				}}
			}}
			opts := Options{Partitioner: partitioner, Workers: 2}
			plan := check(newLoader(w.src, w.store, nil, opts).Plan(t.Context(), "db", "1"))(t)
			err := newLoader(src, w.store, nil, opts).Load(ctx, plan, all(plan))
			finished = err == nil
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, after %d reads: %v", partitioner, reads, err)
			}
			w.clean()
			w.compare(plan, want, check(w.dir().Complete())(t))
			cancel()
			if reads > 10_000 {
				t.Fatal("never done")
			}
		}
	}
}

func TestCancelledBefore(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.Hadoop, 2, keys(10)...), sequencefiles.WriterOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	l := newLoader(w.src, w.store, nil, Options{})
	plan := check(l.Plan(ctx, "db", "1"))(t)
	cancel()
	if err := l.Load(ctx, plan, all(plan)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := l.Plan(ctx, "db", "1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A source that hangs is not waited for, if it knows of the context as it must.
func TestCancelWhileTheSourceHangs(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.Hadoop, 2, keys(1000)...), sequencefiles.WriterOptions{})
	for _, partitioner := range []string{"hadoop", "string"} {
		ctx, cancel := context.WithCancel(t.Context())
		src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
			return body{ReadCloser: f, read: func([]byte) (int, error) {
				cancel()
				<-ctx.Done()
				return 0, ctx.Err()
			}}
		}}
		l := newLoader(src, w.store, nil, Options{Partitioner: partitioner})
		plan := check(newLoader(w.src, w.store, nil, Options{Partitioner: partitioner}).Plan(t.Context(), "db", "1"))(t)
		if err := l.Load(ctx, plan, all(plan)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.clean()
	}
}

// All that is read is counted, also by plans.
func TestCounts(t *testing.T) {
	w := newWorld(t)
	w.write(cut(shard.Hadoop, 2, keys(10_000)...), sequencefiles.WriterOptions{})
	p := new(Progress)
	l := newLoader(w.src, w.store, p, Options{})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	planned := p.Snapshot()
	if n := planned.Scanned; n < 2*sampleFirst || n > 50_000 {
		t.Errorf("%v records were counted for the plan", n)
	}
	expect.NoError(t, l.Load(t.Context(), plan, all(plan)))
	expect.NoError(t, os.RemoveAll(w.root))
	w.newStore()
	l = newLoader(w.src, w.store, p, Options{})
	if err := l.Load(t.Context(), plan, all(plan)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	got := p.Snapshot()
	if want := 10_000 + planned.Scanned; got.Scanned != want {
		t.Errorf("%v records, want %v", got.Scanned, want)
	}
	if want := plan.Files[0].Size + plan.Files[1].Size + planned.Fetched; got.Fetched != want {
		t.Errorf("%v bytes, want %v", got.Fetched, want)
	}
}
