package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/test/expect"
	"sequins/test/faultfs"
)

const testHash = "0123456789abcdef"

// input is the only one of a version in most tests.
func input(version string) content.Input { return content.Input{Name: version, Hash: testHash} }

// planOf returns a manifest for 3 partitions of a version; different names, different divisions.
func planOf(version, name string) Manifest {
	return Manifest{Version: version, Input: testHash, Partitions: 3, Partitioner: name}
}

// blockText is what the block of a partition has in these tests, if it was loaded by this plan.
func blockText(m Manifest, p int) string {
	return fmt.Sprintf("%s/%s by plan %s, partition %d", m.DB, m.Version, m.Partitioner, p)
}

// addBlock loads a partition.
func addBlock(d *Dir, p int) error {
	s := d.Staging()
	if err := stageBlock(d, s, p); err != nil {
		return err
	}
	if err := d.Publish(s, p); err != nil {
		return errors.Join(err, s.RemoveBlock(p))
	}
	return nil
}

// stageBlock is addBlock up to the publication.
func stageBlock(d *Dir, s Staging, p int) error {
	f, err := s.CreateBlock(p)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, blockText(d.Manifest(), p)); err != nil {
		return errors.Join(err, s.DiscardBlock(f))
	}
	return s.FinishBlock(f)
}

// describe lists what a store has as "db/version plan [0 1 2]", and fails if a block is not whole
// or not of its version's plan.
func describe(t *testing.T, s *Store) []string {
	t.Helper()
	dbs, err := s.Databases()
	expect.NoError(t, err)
	list := []string{}
	for _, db := range dbs {
		inputs, err := s.Contents(db)
		expect.NoError(t, err)
		for _, in := range inputs {
			d, err := s.Dir(db, in)
			expect.NoError(t, err)
			complete, err := d.Complete()
			expect.NoError(t, err)
			for _, p := range complete {
				got, err := fsys.ReadFile(s.fs, d.BlockPath(p), 1000)
				expect.NoError(t, err)
				if want := blockText(d.Manifest(), p); string(got) != want {
					t.Errorf("block of partition %d is %q, want %q", p, got, want)
				}
			}
			list = append(list, fmt.Sprint(db, "/", in.Name, " ", d.Manifest().Partitioner, " ", complete))
		}
	}
	state, err := s.State("db")
	expect.NoError(t, err)
	if state.Served.Name != "" {
		list = append(list, "served "+state.Served.Name)
	}
	return list
}

func wantStore(t *testing.T, s *Store, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), describe(t, s)); diff != "" {
		t.Errorf("in the store (-want +got):\n%s", diff)
	}
}

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "Open")
	s, err := Open(dir)
	expect.NoError(t, err)
	wantStore(t, s)
	_, err = s.Dir("db", input("v1"))
	expect.Error(t, "Dir of nothing", err, fs.ErrNotExist)
	for db := range s.dbs.Range {
		t.Errorf("%v is kept, of which there is nothing", db)
	}
	expect.NoError(t, s.Remove("db", input("v1"))) // of nothing

	d, err := s.Create("db", planOf("v1", "A"))
	expect.NoError(t, err)
	wantStore(t, s, "db/v1 A []")
	if want := filepath.Join(dir, "data", "db", "v1", testHash, "00001.block"); d.BlockPath(1) != want {
		t.Errorf("block is at %s, want %s", d.BlockPath(1), want)
	}
	expect.NoError(t, addBlock(d, 2))
	expect.NoError(t, addBlock(d, 0))
	expect.NoError(t, addBlock(d, 0))
	expect.NoError(t, os.WriteFile(filepath.Join(d.Staging().Temp(), "run"), nil, 0o644))
	_, err = s.Create("db", planOf("v0", "B"))
	expect.NoError(t, err)
	_, err = s.Create("other", planOf("v1", "C"))
	expect.NoError(t, err)
	want := []string{"db/v0 B []", "db/v1 A [0 2]", "other/v1 C []"}
	wantStore(t, s, want...)
	expect.NoError(t, s.Close())

	s, err = Open(dir)
	expect.NoError(t, err)
	wantStore(t, s, want...)
	open, err := os.Open(d.BlockPath(2))
	expect.NoError(t, err)
	defer open.Close()
	expect.NoError(t, s.Remove("db", input("v1")))
	wantStore(t, s, "db/v0 B []", "other/v1 C []")
	data, err := io.ReadAll(open)
	if err != nil || string(data) != blockText(d.Manifest(), 2) {
		t.Errorf("a block that was open reads %q, %v after the removal", data, err)
	}
	expect.NoError(t, s.Remove("db", input("v0")))
	expect.NoError(t, s.Remove("other", input("v1")))
	wantStore(t, s)
	expect.NoError(t, s.Forget("db"))
	expect.NoError(t, s.Forget("other"))
	entries, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left over after all was removed: %v, %v", entries, err)
	}
	expect.NoError(t, s.Close())
}

// memStore opens a store on f.
func memStore(t *testing.T, f *faultfs.FS) *Store {
	t.Helper()
	s, err := openSwept(f)
	if s == nil {
		t.Fatal(err)
	}
	return s
}

// openSwept opens the store as a node does, which then sweeps each db.
func openSwept(f fsys.FS) (*Store, error) {
	s, err := OpenFS(f, "/s")
	if err != nil {
		return nil, err
	}
	dbs, err := s.Databases()
	for _, db := range dbs {
		err = errors.Join(err, s.Sweep(db))
	}
	return s, err
}

// filled is a store with a version of plan A that has its blocks 0 and 1.
func filled(t *testing.T) (*faultfs.FS, *Store, *Dir) {
	t.Helper()
	f := faultfs.New()
	s := memStore(t, f)
	d, err := s.Create("db", planOf("v", "A"))
	expect.NoError(t, err)
	expect.NoError(t, addBlock(d, 0))
	expect.NoError(t, addBlock(d, 1))
	return f, s, d
}

func TestStoreNames(t *testing.T) {
	_, s, _ := filled(t)
	long := strings.Repeat("x", 256)
	for _, name := range []string{"", ".", "..", ".trash-1", "_x", "-x", "a/b", "../db", "a\x00", "ä", "a b", "a\n", "a#00001", long} {
		_, createDB := s.Create(name, planOf("v", "A"))
		_, createVersion := s.Create("db", planOf(name, "A"))
		_, dirDB := s.Dir(name, input("v"))
		_, dirVersion := s.Dir("db", input(name))
		_, versions := s.Contents(name)
		for _, err := range []error{createDB, createVersion, dirDB, dirVersion, versions, s.Remove(name, input("v")), s.Remove("db", input(name))} {
			if err == nil || !strings.Contains(err.Error(), "name") || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q passes for a name: %v", name, err)
			}
		}
	}
	for _, hash := range []string{"", "x", testHash[1:], testHash + "0", strings.ToUpper(testHash), "../" + testHash[3:]} {
		in := content.Input{Name: "v", Hash: hash}
		if _, err := s.Dir("db", in); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q passes for the hash of an input: %v", hash, err)
		}
	}
	for _, name := range []string{"a", "0", "A.b_c-d", "a..", "a+00001", "run@2026-01-31T10:00:00+01:00", "dt=2026-01-31,x", long[:255]} {
		_, err := s.Create(name, planOf(name, "A"))
		expect.NoError(t, err)
		if inputs, err := s.Contents(name); err != nil || len(inputs) != 1 || inputs[0] != input(name) {
			t.Errorf("contents of %.20q: %v, %v", name, inputs, err)
		}
		expect.NoError(t, s.Remove(name, input(name)))
	}
	_, err := s.Create("db", planOf("STATE.json", "A"))
	if err == nil {
		t.Error("a version has the name of a file of the store")
	}
	wantStore(t, s, "db/v A [0 1]")
}

// TestInputsOfAVersion: contents of one version are apart, and its directory goes with the last of them.
func TestInputsOfAVersion(t *testing.T) {
	f, s, first := filled(t)
	other := planOf("v", "A")
	other.Input = strings.Repeat("f", content.Digits)
	second, err := s.Create("db", other)
	expect.NoError(t, err)
	expect.NoError(t, addBlock(second, 2))
	wantStore(t, s, "db/v A [0 1]", "db/v A [2]")
	stage := first.Staging()
	expect.NoError(t, stageBlock(first, stage, 2))
	expect.Error(t, "publishing a block of another input", second.Publish(stage, 2), fs.ErrNotExist)
	expect.NoError(t, first.Clear(stage))
	expect.NoError(t, s.Remove("db", input("v")))
	wantStore(t, s, "db/v A [2]")
	wantStore(t, memStore(t, f), "db/v A [2]")
	expect.NoError(t, s.Remove("db", other.Content().Input))
	if left := tree(t, f, "/s/data"); len(left) != 1 || left[0] != "/s/data/db/STATE.json" {
		t.Errorf("left are %v", left)
	}
}

func TestCreateInvalid(t *testing.T) {
	_, s, _ := filled(t)
	if _, err := s.Create("db", Manifest{Version: "v2", Input: testHash, Partitions: -1}); err == nil {
		t.Error("-1 partitions are accepted")
	}
	wantStore(t, s, "db/v A [0 1]")
}

func TestCreateAgain(t *testing.T) {
	f, s, d := filled(t)
	created := d.Manifest().Created
	d2, err := s.Create("db", planOf("v", "A"))
	expect.NoError(t, err)
	if d2 != d || created.IsZero() || !d2.Manifest().Created.Equal(created) {
		t.Errorf("the same plan makes another manifest")
	}
	wantStore(t, s, "db/v A [0 1]")
	wantStore(t, memStore(t, f), "db/v A [0 1]")

	_, err = s.Create("db", planOf("v", "B"))
	expect.NoError(t, err)
	wantStore(t, s, "db/v B []")
	wantStore(t, memStore(t, f.Crash(faultfs.Lose)), "db/v B []")
}

// write makes a file.
func write(t *testing.T, fsys fsys.FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	expect.NoError(t, err)
	_, err = io.WriteString(f, content)
	expect.NoError(t, err)
	expect.NoError(t, f.Close())
}

func TestBadManifests(t *testing.T) {
	newer := []byte(`{"format_version":5}`)
	tests := []struct {
		name    string
		content []byte
		want    error
	}{
		{"damaged", []byte("x"), blocks.ErrCorrupt},
		{"empty", nil, blocks.ErrCorrupt},
		{"newer", newer, blocks.ErrCorrupt},
		{"too long", append(newer, make([]byte, maxManifest)...), blocks.ErrCorrupt},
		{"of another version", []byte(seal(goodBody)), blocks.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, remove := range []bool{false, true} {
				f, _, _ := filled(t)
				expect.NoError(t, f.Alter("/s/data/db/v/0123456789abcdef/MANIFEST.json", func([]byte) []byte { return tt.content }))
				s := memStore(t, f)
				_, err := s.Dir("db", input("v"))
				expect.Error(t, "Dir", err, tt.want)
				if err == nil || !strings.Contains(err.Error(), "/s/data/db/v/0123456789abcdef/MANIFEST.json") {
					t.Errorf("the error does not name the file: %v", err)
				}
				if versions, err := s.Contents("db"); err != nil || len(versions) != 1 {
					t.Errorf("Versions: %v, %v", versions, err)
				}
				if remove {
					expect.NoError(t, s.Remove("db", input("v")))
					wantStore(t, s)
					continue
				}
				_, err = s.Create("db", planOf("v", "A"))
				expect.NoError(t, err)
				wantStore(t, s, "db/v A []")
			}
		})
	}
}

// TestConcurrentStore is for the race detector: versions come and go while others are loaded.
func TestConcurrentStore(t *testing.T) {
	s, err := Open(t.TempDir())
	expect.NoError(t, err)
	defer s.Close()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 10 {
				db, v := "db"+fmt.Sprint(i%2), "v"+fmt.Sprint(i)
				d, err := s.Create(db, planOf(v, "A"))
				if err == nil {
					err = errors.Join(addBlock(d, 0), addBlock(d, 1), d.SetAside(1))
				}
				if _, lerr := s.Databases(); lerr != nil {
					err = errors.Join(err, lerr)
				}
				if err = errors.Join(err, s.Remove(db, input(v))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantStore(t, s)
}

// TestStoreDiskFull: where the disk is full nothing is left but what was there, and what there is
// can still be served.
func TestStoreDiskFull(t *testing.T) {
	f, s, d := filled(t)
	f.SetFree(10)
	expect.Error(t, "Publish", addBlock(d, 2), syscall.ENOSPC)
	_, err := s.Create("db", planOf("v2", "A"))
	expect.Error(t, "Create", err, syscall.ENOSPC)
	entries, err := f.ReadDir("/s/data/db")
	expect.NoError(t, err)
	if len(entries) != 2 { // and the state
		t.Errorf("left behind: %v", entries)
	}
	wantStore(t, s, "db/v A [0 1]")
	wantStore(t, memStore(t, f), "db/v A [0 1]")
}

// busyOnce fails once to delete a block.
type busyOnce struct {
	fsys.FS
	left int
}

func (b *busyOnce) RemoveAll(name string) error {
	if b.left > 0 {
		b.left--
		return &fs.PathError{Op: "unlinkat", Path: name, Err: syscall.EIO}
	}
	return b.FS.RemoveAll(name)
}

func TestLeftoversOfAFailedRemoval(t *testing.T) {
	dir := t.TempDir()
	b := &busyOnce{FS: fsys.OS}
	s, err := OpenFS(b, dir)
	expect.NoError(t, err)
	m := Manifest{Version: "1", Input: content.Sum("x"), Format: "sequencefile", Partitions: 1, Partitioner: "string", LastModified: time.Now()}
	d, err := s.Create("fruit", m)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(d.BlockPath(0), make([]byte, 1<<20), 0o644))
	in := m.Content().Input
	b.left = 1
	if err := s.Remove("fruit", in); err == nil {
		t.Fatal("the removal has not failed")
	}
	if _, err := s.Dir("fruit", in); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of a content is given out: %v", err)
	}
	expect.NoError(t, s.Remove("fruit", in))
	if left, _ := os.ReadDir(filepath.Join(dir, "data/fruit")); len(left) != 1 { // the state
		t.Errorf("the retry has left %v", left)
	}
}
