package node

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/internal/content"
	"sequins/load/loadproc"
	"sequins/observe/status"
	"sequins/shard"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
	"sequins/version"
)

// beLoader makes the test binary a load process.
const beLoader = "SEQUINS_TEST_IS_LOADER"

func TestMain(m *testing.M) {
	if os.Getenv(beLoader) != "" {
		os.Exit(loadproc.Main(func(_ context.Context, spec json.RawMessage) (source.Source, error) {
			var root string
			if err := json.Unmarshal(spec, &root); err != nil {
				return nil, err
			}
			return openTestSource(root)
		}))
	}
	// Most of what nodes do is wait, so several tests run at a time, however few cores there are.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what should take milliseconds.
const patience = 30 * time.Second

// A fixture is a source and a store, and at most one node on them at a time.
type fixture struct {
	t      *testing.T
	root   string // the source
	store  string
	source *testSource
	log    *lines
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	root := filepath.Join(t.TempDir(), "source")
	expect.NoError(t, os.Mkdir(root, 0o755))
	expect.NoError(t, os.Mkdir(control(root), 0o755))
	src, err := openTestSource(root)
	expect.NoError(t, err)
	f := &fixture{t: t, root: root, store: filepath.Join(t.TempDir(), "store"), source: src, log: &lines{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.log.String())
		}
	})
	return f
}

// put writes a version of the given number of files, with _SUCCESS, as a job
// does it: hidden first, then in one step. Every key has the value
// "<key> of <version>".
func (f *fixture) put(db, version string, files int, keys ...string) {
	f.t.Helper()
	expect.NoError(f.t, os.MkdirAll(filepath.Join(f.root, db), 0o755))
	temp := filepath.Join(f.root, db, "_temporary")
	expect.NoError(f.t, os.Mkdir(temp, 0o755))
	sequencefiles.WriteParts(f.t, temp, files, shard.String.Partition, func(add func(key, value string)) {
		for _, key := range keys {
			add(key, key+" of "+version)
		}
	})
	expect.NoError(f.t, os.WriteFile(filepath.Join(temp, "_SUCCESS"), nil, 0o644))
	expect.NoError(f.t, os.Rename(temp, filepath.Join(f.root, db, version)))
}

// putFile writes a file of the source, in the form of put.
func (f *fixture) putFile(name, version string, keys ...string) {
	f.t.Helper()
	sequencefiles.WriteFile(f.t, filepath.Join(f.root, name), sequencefiles.WriterOptions{SyncSeed: "seed"}, func(add func(key, value string)) {
		for _, key := range keys {
			add(key, key+" of "+version)
		}
	})
}

// inFile returns those of some keys that put writes into file i of files.
func inFile(i, files int, keys []string) (found []string) {
	for _, key := range keys {
		if shard.String.Partition([]byte(key), files) == i {
			found = append(found, key)
		}
	}
	return found
}

// damage cuts a file of a version short. The version keeps the others.
func (f *fixture) damage(db, version, file string) {
	f.t.Helper()
	path := filepath.Join(f.root, db, version, file)
	data, err := os.ReadFile(path)
	expect.NoError(f.t, err)
	temp := filepath.Join(control(f.root), "damaged")
	expect.NoError(f.t, os.WriteFile(temp, data[:len(data)-3], 0o644))
	expect.NoError(f.t, os.Rename(temp, path)) // no listing sees a half
}

func (f *fixture) remove(path ...string) {
	f.t.Helper()
	expect.NoError(f.t, os.RemoveAll(filepath.Join(append([]string{f.root}, path...)...)))
}

// dir returns the directory of the content of a version that was planned last in the store.
func (f *fixture) dir(db, version string) string {
	f.t.Helper()
	manifests, err := filepath.Glob(filepath.Join(f.store, "data", db, version, "*", "MANIFEST.json"))
	expect.NoError(f.t, err)
	newest, at := filepath.Join(f.store, "data", db, version, "none"), time.Time{}
	for _, path := range manifests {
		if st, err := os.Stat(path); err == nil && st.ModTime().After(at) {
			newest, at = filepath.Dir(path), st.ModTime()
		}
	}
	return newest
}

// manifest returns the plan by which a version was loaded.
func (f *fixture) manifest(db, version string) (m store.Manifest) {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir(db, version), "MANIFEST.json"))
	expect.NoError(f.t, err)
	expect.NoError(f.t, m.UnmarshalJSON(data))
	return m
}

// onDisk lists the versions of a db in the store, once for each content, and what has not been cleared away.
func (f *fixture) onDisk(db string) string {
	f.t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.store, "data", db))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Error(err)
	}
	var names []string
	for _, e := range entries {
		contents, err := os.ReadDir(filepath.Join(f.store, "data", db, e.Name()))
		if err != nil || len(contents) == 0 {
			contents = []os.DirEntry{e}
		}
		if !strings.HasPrefix(e.Name(), "STATE.json") {
			names = append(names, slices.Repeat([]string{e.Name()}, len(contents))...)
		}
	}
	return strings.Join(names, " ")
}

// statePath is the file of the state of a db.
func (f *fixture) statePath(db string) string {
	return filepath.Join(f.store, "data", db, "STATE.json")
}

// openStore opens the store. A process that another test is starting has the file of the lock for a moment after the node has closed it.
func (f *fixture) openStore() (local *store.Store) {
	f.t.Helper()
	expect.Eventually(f.t, "the store is free", func() bool {
		var err error
		local, err = store.Open(f.store)
		if !errors.Is(err, store.ErrLocked) {
			expect.NoError(f.t, err)
		}
		return err == nil
	})
	return local
}

// state returns what a node that has stopped remembers of a db; change may change it.
func (f *fixture) state(db string, change func(*store.State)) store.State {
	f.t.Helper()
	local := f.openStore()
	state, err := local.State(db)
	expect.NoError(f.t, err)
	if change != nil {
		change(&state)
		expect.NoError(f.t, local.SetState(db, state))
	}
	expect.NoError(f.t, local.Close())
	return state
}

// remembers returns what a running node remembers of a db.
func (n *Node) remembers(t *testing.T, db string) store.State {
	t.Helper()
	state, err := n.o.Store.State(db)
	expect.NoError(t, err)
	return state
}

// A running is a node that runs.
type running struct {
	*Node
	f      *fixture
	url    string
	client *http.Client
	cancel context.CancelFunc
	done   chan error
}

// run starts a node, and returns when it answers. It is stopped at the end of
// the test, if not before.
func (f *fixture) run(change ...func(*Options)) *running {
	f.t.Helper()
	local := f.openStore()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(f.t, err)
	o := Options{
		Source: f.source, Loads: f.launcher(), SourceName: f.root, Store: local, Listener: ln,
		Logger: slog.New(slog.NewTextHandler(f.log, nil)), Build: "test", Reloadable: Reloadable{DBRemoveTimeout: time.Hour},
	}
	for _, c := range change {
		c(&o)
	}
	n, err := New(o)
	expect.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Node: n, f: f, url: "http://" + ln.Addr().String(), cancel: cancel, done: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{}}}
	go func() { r.done <- n.Run(ctx) }()
	f.t.Cleanup(func() { r.stop() })
	r.get("/livez")
	// Most starts are over in a moment; one that waits for something is for its test to wait for.
	for deadline := time.Now().Add(time.Second); !n.looked.Load() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	return r
}

// each changes the settings of all databases.
func (r *Reloadable) each(change func(*DB)) {
	before := r.DB
	r.DB = func(name string) (d DB) {
		if before != nil {
			d = before(name)
		}
		change(&d)
		return d
	}
}

// verbose makes a node log what it logs for debugging.
func (f *fixture) verbose(o *Options) {
	o.Logger = slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// stop shuts the node down and waits for that.
func (r *running) stop() {
	r.f.t.Helper()
	r.cancel()
	r.client.CloseIdleConnections()
	select {
	case err, first := <-r.done:
		if first {
			close(r.done)
		}
		if err != nil {
			r.f.t.Errorf("Run: %v", err)
		}
	case <-time.After(patience):
		r.f.t.Error("the node does not stop")
	}
}

// An answer is what a GET got.
type answer struct {
	status        int
	body, version string
}

func (r *running) get(path string) answer {
	r.f.t.Helper()
	a, err := r.try(path)
	expect.NoError(r.f.t, err)
	return a
}

func (r *running) try(path string) (answer, error) {
	resp, err := r.client.Get(r.url + path)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(body), resp.Header.Get("X-Sequins-Version")}, err
}

func (r *running) eventually(what string, f func() bool) {
	r.f.t.Helper()
	expect.Eventually(r.f.t, what, f)
}

// serves waits until a version of a db is the current one.
func (r *running) serves(db, version string) {
	r.f.t.Helper()
	r.eventually(db+" is served from "+version, func() bool {
		s := r.Set([]byte(db))
		return s != nil && s.Current().Name == version && r.onNode(db, version).Current // the status follows a moment later
	})
}

// update puts a version into the source and waits until it is served.
func (r *running) update(db, version string, files int, keys ...string) {
	r.f.t.Helper()
	r.f.put(db, version, files, keys...)
	r.Refresh()
	r.serves(db, version)
}

// current returns the name of the current version of a db that has a set.
func (n *Node) current(db string) string { return n.Set([]byte(db)).Current().Name }

// expectCurrent fails the test unless a version is the current one.
func (n *Node) expectCurrent(t *testing.T, db, version string) {
	if got := n.current(db); got != version {
		t.Helper()
		t.Errorf("current of %s is %q, want %q", db, got, version)
	}
}

// onNode returns what the status says of a version on this node.
func (n *Node) onNode(db, version string) status.OnNode {
	return n.Status().DBs[db].Versions[version].Nodes["localhost"]
}

// lines is a log whose lines are counted.
type lines struct{ expect.Output }

// count returns how many lines have all of the words.
func (l *lines) count(words ...string) int { return len(l.with(words...)) }

// with returns the lines that have all of the words.
func (l *lines) with(words ...string) (found []string) {
line:
	for line := range strings.Lines(l.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue line
			}
		}
		found = append(found, line)
	}
	return found
}

// namesOf returns the names of inputs; nil if there are none.
func namesOf(inputs []content.Input) (names []string) {
	for _, in := range inputs {
		names = append(names, in.Name)
	}
	return names
}

// named returns the version of a set with a name that was opened last; nil if there is none.
func named(s *version.Set, name string) *version.Version {
	h := s.AcquireVersion(name, "")
	if h == nil {
		return nil
	}
	defer h.Release()
	return s.Version(h.Content.Input)
}
