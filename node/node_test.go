package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/blocks"
	"sequins/load"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
)

func TestSetDoesNotAllocate(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	known, unknown := []byte("fruit"), []byte("vegetables")
	if n := testing.AllocsPerRun(100, func() {
		r.Set(known).Acquire().Release()
		if r.Set(unknown) != nil {
			t.Error("an unknown database has versions")
		}
	}); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func TestStatus(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	r := f.run(func(o *Options) { o.ShardID, o.Replication = func() string { return "s1" }, 2 })
	r.serves("fruit", "1")
	s := r.Status()
	if s.ShardID != "s1" || s.Node != "localhost" || s.Build != "test" || s.Source != f.root ||
		s.StartedAt.IsZero() || s.RefreshedAt.IsZero() || s.SourceError != "" {
		t.Errorf("node: %+v", s)
	}
	v := s.DBs["fruit"].Versions["1"]
	if v.Path != filepath.Join(f.root, "fruit", "1") || v.NumPartitions != 3 || v.TargetReplication != 2 {
		t.Errorf("version: %+v", v)
	}
	n := v.Nodes["localhost"]
	if n.State != "ACTIVE" || !n.Current || len(n.Partitions) != 3 || n.Records != int64(len(fruit)) || n.Bytes == 0 ||
		n.CreatedAt.IsZero() || n.ActiveAt.Before(n.CreatedAt) || n.LastModified.IsZero() || n.Partitioner != "string" {
		t.Errorf("node of version: %+v", n)
	}
	var sizes []int64
	for p := range 3 {
		block, err := os.Stat(filepath.Join(f.dir("fruit", "1"), fmt.Sprintf("%05d.block", p)))
		expect.NoError(t, err)
		sizes = append(sizes, block.Size())
	}
	if diff := cmp.Diff(sizes, n.PartitionBytes); diff != "" {
		t.Errorf("sizes of blocks (-on the disk +in the status):\n%s", diff)
	}
	r.stop()

	r = f.run()
	r.serves("fruit", "1")
	// What is remembered is when its load began, which was after it was found.
	if again := r.onNode("fruit", "1").CreatedAt; again.Before(n.CreatedAt) || again.After(n.ActiveAt) {
		t.Errorf("created at %v and active at %v, but created at %v after a restart", n.CreatedAt, n.ActiveAt, again)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	f.damage("nuts", "1", "part-r-00000")
	r := f.run()
	r.serves("fruit", "1")
	r.eventually("nuts fails", func() bool { return r.onNode("nuts", "1").State == "ERROR" })
	// A database's view follows what it serves a moment later.
	r.eventually("ready, as the fault is that of nuts", func() bool { ok, _ := r.Ready(""); return ok })
	if ok, reason := r.Ready("nuts"); ok || !strings.Contains(reason, "nuts") {
		t.Errorf("ready for nuts: %v, %q", ok, reason)
	}
	if got := r.get("/nuts/almond"); got.status != http.StatusServiceUnavailable {
		t.Errorf("a db that cannot be read yet: %+v", got)
	}
	f.put("nuts", "2", 1, "almond")
	f.put("seeds", "1", 1, "poppy")
	f.damage("seeds", "1", "part-r-00000")
	r.Refresh()
	r.serves("nuts", "2")
	r.eventually("ready for nuts", func() bool { ok, _ := r.Ready("nuts"); return ok })
	r.eventually("seeds fails", func() bool { return r.onNode("seeds", "1").State == "ERROR" })
	if ok, reason := r.Ready(""); !ok {
		t.Errorf("a db that appeared later keeps the node out: %s", reason)
	}
	if ok, reason := r.Ready("bread"); ok || !strings.Contains(reason, "there is no database bread") {
		t.Errorf("ready for what does not exist: %v, %q", ok, reason)
	}
	r.stop()

	// What was served before has to be served.
	expect.NoError(t, os.Truncate(filepath.Join(f.dir("nuts", "2"), "00000.block"), 100))
	f.source.bad.Store(true)
	r = f.run()
	if ok, reason := r.Ready(""); ok || !strings.Contains(reason, "nuts") {
		t.Errorf("ready without nuts: %v, %q", ok, reason)
	}
	f.source.bad.Store(false)
	r.eventually("ready", func() bool { ok, _ := r.Ready(""); return ok })
}

func TestApply(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run(func(o *Options) { o.Bandwidth = 1 << 30 })
	r.serves("fruit", "1")
	r.Apply(Reloadable{DB: func(db string) DB { return DB{ContentType: "text/" + db, Load: load.Options{Compression: blocks.Zstd}} }})
	resp, err := r.client.Get(r.url + "/fruit/fig")
	expect.NoError(t, err)
	resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/fruit" {
		t.Errorf("content type %q", got)
	}
	r.update("fruit", "2", 1, fruit...)
	b, err := blocks.Open(filepath.Join(f.dir("fruit", "2"), "00000.block"))
	expect.NoError(t, err)
	defer b.Close()
	if got := b.Properties().Compression; got != "zstd" {
		t.Errorf("compression %q", got)
	}
}

func TestDebugListener(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	r := f.run(func(o *Options) { o.DebugListener = ln })
	r.serves("fruit", "1")
	resp, err := r.client.Get("http://" + ln.Addr().String() + "/metrics")
	expect.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	expect.NoError(t, err)
	for _, line := range []string{`sequins_versions{db="fruit",state="ACTIVE"} 1`, `sequins_load_records_total{db="fruit"} 8`} {
		if !strings.Contains(string(body), line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	r.stop()
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the debug listener is still open")
	}
}

// TestStartFails: what is in the way of the store is an error of Run, which
// closes everything it was given.
func TestStartFails(t *testing.T) {
	f := newFixture(t)
	local, err := store.Open(f.store)
	expect.NoError(t, err)
	expect.NoError(t, os.RemoveAll(filepath.Join(f.store, "data")))
	expect.NoError(t, os.WriteFile(filepath.Join(f.store, "data"), nil, 0o644))
	lns := make([]net.Listener, 2)
	for i := range lns {
		lns[i], err = net.Listen("tcp", "127.0.0.1:0")
		expect.NoError(t, err)
	}
	n, err := New(Options{Source: f.source, Loads: f.launcher(), Store: local, Listener: lns[0], DebugListener: lns[1]})
	expect.NoError(t, err)
	if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "local store") {
		t.Errorf("Run: %v", err)
	}
	for _, ln := range lns {
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			t.Errorf("%s is still open", ln.Addr())
		}
	}
	expect.NoError(t, os.Remove(filepath.Join(f.store, "data")))
	local, err = store.Open(f.store)
	expect.NoError(t, err)
	expect.NoError(t, local.Close())
}

// A hanging source answers when its context ends.
type hanging struct{ *testSource }

func (hanging) ReadDir(ctx context.Context, _ string) (source.Entries, error) {
	<-ctx.Done()
	return source.Entries{}, ctx.Err()
}

// TestShutdownAtStart ends a node that still waits for its source.
func TestShutdownAtStart(t *testing.T) {
	f := newFixture(t)
	local, err := store.Open(f.store)
	expect.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	n, err := New(Options{Source: hanging{f.source}, Loads: f.launcher(), Store: local, Listener: ln})
	expect.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := n.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(began); took > startTimeout/2 {
		t.Errorf("it took %v", took)
	}
}

// TestShutdownFinishesRequests: a value that is being streamed is streamed to
// its end, from a version that is closed after that.
func TestShutdownFinishesRequests(t *testing.T) {
	const size = 8 << 20
	f := newFixture(t)
	f.put("fruit", "1", 1, "melon", strings.Repeat("x", 100))
	expect.NoError(t, os.MkdirAll(filepath.Join(f.root, "big", "_temporary"), 0o755))
	f.putFile("big/_temporary/part-00000", strings.Repeat("v", size), "melon")
	expect.NoError(t, os.Rename(filepath.Join(f.root, "big", "_temporary"), filepath.Join(f.root, "big", "1")))
	r := f.run()
	r.serves("big", "1")
	resp, err := r.client.Get(r.url + "/big/melon")
	expect.NoError(t, err)
	defer resp.Body.Close()
	r.cancel()
	r.eventually("it drains", func() bool { return f.log.count("shutting down") == 1 })
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != size+int64(len("melon of ")) {
		t.Errorf("read %d bytes: %v", n, err)
	}
	r.stop()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}
