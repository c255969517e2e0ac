package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/shard"
	"sequins/source"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
	"sequins/test/sparkeylog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rec is a record of a test's file.
type rec struct {
	key, value string
	deleted    bool
}

// data is a test's file.
type data struct {
	name    string
	records []rec
}

// world is a source and a store of a test's.
type world struct {
	t     testing.TB
	root  string // of the source
	src   *local.Source
	store *store.Store
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir()}
	w.src = check(local.New(w.root))(t)
	w.newStore()
	return w
}

// newStore gives the world an empty store.
func (w *world) newStore() {
	w.t.Helper()
	w.store = check(store.OpenFS(hasty{fsys.OS}, w.t.TempDir()))(w.t)
}

// hasty is a file system that does not wait for the disk: there are thousands
// of blocks in these tests.
type hasty struct{ fsys.FS }

type hastyFile struct{ fsys.File }

func (h hasty) Create(name string) (fsys.File, error) {
	f, err := h.FS.Create(name)
	return hastyFile{f}, err
}

func (hasty) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

func (hasty) SyncDir(string) error { return nil }

func (hastyFile) Sync() error { return nil }

func check[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		expect.NoError(t, err)
		return v
	}
}

// put writes a file of version 1 of db.
func (w *world) put(name string, content []byte) {
	w.t.Helper()
	path := filepath.Join(w.root, "db", "1", name)
	expect.NoError(w.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)))
}

// write writes data files, in the format that their names say.
func (w *world) write(files []data, opts sequencefiles.WriterOptions) {
	w.t.Helper()
	for _, f := range files {
		if IsLog(f.name) {
			w.put(f.name, sparkeyLog(w.t, f.records))
		} else {
			w.put(f.name, sequenceFile(w.t, f.records, opts))
		}
	}
}

func sequenceFile(t testing.TB, records []rec, opts sequencefiles.WriterOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	w := check(sequencefiles.NewWriter(&b, opts))(t)
	for _, r := range records {
		expect.NoError(t, w.Append([]byte(r.key), []byte(r.value)))
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}

func sparkeyLog(t testing.TB, records []rec) []byte {
	t.Helper()
	f := check(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	defer f.Close()
	w := check(sparkeylog.NewWriter(f, sparkeylog.WriterOptions{}))(t)
	for _, r := range records {
		var err error
		if r.deleted {
			err = w.Delete([]byte(r.key))
		} else {
			err = w.Put([]byte(r.key), []byte(r.value))
		}
		expect.NoError(t, err)
	}
	expect.NoError(t, w.Close())
	return check(os.ReadFile(f.Name()))(t)
}

// load plans and loads, and checks that nothing temporary is left.
func (w *world) load(opts Options, want ...int) *Plan {
	w.t.Helper()
	l := newLoader(w.src, w.store, nil, opts)
	plan := check(l.Plan(w.t.Context(), "db", "1"))(w.t)
	if want == nil {
		want = all(plan)
	}
	expect.NoError(w.t, l.Load(w.t.Context(), plan, want))
	w.clean()
	return plan
}

func all(plan *Plan) []int {
	var want []int
	for p := range plan.Partitions {
		want = append(want, p)
	}
	return want
}

func (w *world) dir() *store.Dir {
	w.t.Helper()
	return newest(w.t, w.store)
}

// newest returns the directory of the content that was planned last.
func newest(t testing.TB, local *store.Store) (last *store.Dir) {
	t.Helper()
	for _, in := range check(local.Contents("db"))(t) {
		if d := check(local.Dir("db", in))(t); last == nil || d.Manifest().Created.After(last.Manifest().Created) {
			last = d
		}
	}
	if last == nil {
		t.Fatal("there is no content of db")
	}
	return last
}

// clean fails the test if there is anything in the version's directory that
// does not belong there between two loads.
func (w *world) clean() {
	w.t.Helper()
	dir := w.dir()
	for _, path := range []string{filepath.Dir(dir.BlockPath(0)), dir.Staging().Temp()} {
		for _, e := range check(os.ReadDir(path))(w.t) {
			name := e.Name()
			if name != filepath.Base(dir.Staging().Temp()) && name != "MANIFEST.json" && filepath.Ext(name) != ".block" {
				w.t.Errorf("%s is left in %s", name, path)
			}
		}
	}
}

// block returns what is in the block of a partition, and checks the block.
func (w *world) block(partition int) map[string]string {
	w.t.Helper()
	r := check(blocks.Open(w.dir().BlockPath(partition)))(w.t)
	defer r.Close()
	expect.NoError(w.t, r.Verify(w.t.Context()))
	got := map[string]string{}
	it := r.Iter(nil, nil)
	for it.Next() {
		v := it.Value()
		got[string(it.Key())] = string(check(io.ReadAll(v.Section(0, v.Len())))(w.t))
	}
	expect.NoError(w.t, it.Err())
	return got
}

// bytesOf returns the blocks as they lie on the disk.
func (w *world) bytesOf(partitions []int) map[int]string {
	w.t.Helper()
	got := map[int]string{}
	for _, p := range partitions {
		got[p] = string(check(os.ReadFile(w.dir().BlockPath(p)))(w.t))
	}
	return got
}

// model is what each partition must hold: the last record of the last file
// wins, a delete deletes what is older.
func model(files []data, by shard.Partitioner, partitions int) []map[string]string {
	m := make([]map[string]string, partitions)
	for i := range m {
		m[i] = map[string]string{}
	}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b data) int { return strings.Compare(a.name, b.name) }) {
		for _, r := range f.records {
			p := m[by.Partition([]byte(r.key), partitions)]
			if r.deleted {
				delete(p, r.key)
			} else {
				p[r.key] = r.value
			}
		}
	}
	return m
}

func (w *world) compare(plan *Plan, want []map[string]string, partitions []int) {
	w.t.Helper()
	for _, p := range partitions {
		if got := w.block(p); !maps.Equal(want[p], got) { // cmp.Diff is slow also where nothing differs
			w.t.Fatalf("partition %d of %d (-want +got):\n%s", p, plan.Partitions, cmp.Diff(want[p], got))
		}
	}
	complete := check(w.dir().Complete())(w.t)
	if diff := cmp.Diff(partitions, complete); diff != "" {
		w.t.Fatalf("complete partitions (-want +got):\n%s", diff)
	}
}

// cut deals records with the given keys out to n files by a partitioner.
func cut(by shard.Partitioner, n int, keys ...string) []data {
	files := make([]data, n)
	for i := range files {
		files[i].name = fmt.Sprintf("part-r-%05d", i)
	}
	for _, k := range keys {
		f := &files[by.Partition([]byte(k), n)]
		f.records = append(f.records, rec{key: k, value: "value of " + k})
	}
	return files
}

// keys returns n keys in ascending order, which every partitioner cuts in its
// own way.
func keys(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("ключ-%06d", i))
	}
	return all
}

// A testLoader is a Loader with a store.
type testLoader struct {
	*Loader
	store *store.Store
}

func newLoader(src source.Source, to *store.Store, p *Progress, o Options) *testLoader {
	return &testLoader{New(src, p, o), to}
}

// Load loads partitions into the store. Wanted partitions that are present and made by the same plan are
// kept.
func (l *testLoader) Load(ctx context.Context, plan *Plan, want []int) error {
	want, err := plan.wanted(want)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := l.store.Create(plan.DB, plan.Manifest())
	if err != nil {
		return err
	}
	todo, err := dir.Missing(want)
	if err != nil {
		return err
	}
	to := dir.Staging()
	return l.LoadInto(ctx, plan, Target{Staging: to, Want: todo, Have: len(want) - len(todo), Publish: func(partitions []int) error {
		return dir.Publish(to, partitions...)
	}})
}
