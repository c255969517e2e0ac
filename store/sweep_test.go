package store

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/fsys"
	"sequins/test/expect"
	"sequins/test/faultfs"
)

// tree lists the files, and the empty directories, below dir.
func tree(t *testing.T, fs fsys.FS, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	expect.NoError(t, err)
	var list []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !e.IsDir() {
			list = append(list, name)
		} else if below := tree(t, fs, name); len(below) > 0 {
			list = append(list, below...)
		} else {
			list = append(list, name+"/")
		}
	}
	return list
}

// plant makes files, and their directories; a name that ends in a slash is a directory.
func plant(t *testing.T, f *faultfs.FS, names ...string) {
	t.Helper()
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			expect.NoError(t, f.MkdirAll(name))
			continue
		}
		expect.NoError(t, f.MkdirAll(path.Dir(name)))
		write(t, f, name, "x")
	}
}

func TestStoreSweep(t *testing.T) {
	tests := []struct {
		name         string
		left, remove []string // of what is planted
	}{
		{name: "temporary files", remove: []string{"/s/data/db/v/0123456789abcdef/00002.block.1.tmp", "/s/data/db/v/0123456789abcdef/MANIFEST.json.2.tmp",
			"/s/data/db/v/0123456789abcdef/tmp/run-1.tmp", "/s/data/db/v/0123456789abcdef/tmp/dir/file"}},
		{name: "set aside", left: []string{"/s/data/db/v/0123456789abcdef/00002.block.corrupt"}},
		{name: "no manifest", remove: []string{"/s/data/db/v2/0123456789abcdef/tmp/", "/s/data/db/v3/0123456789abcdef/00001.block", "/s/data/db/v3/0123456789abcdef/tmp/x",
			"/s/data/db/v4/0123456789abcdef/MANIFEST.json.1.tmp", "/s/data/db/v5/0123456789abcdef/", "/s/data/a/v/0123456789abcdef/", "/s/data/b/"}},
		{name: "of the first sequins", left: []string{"/s/data/db/v2/.manifest", "/s/data/db/v2/block-00001-0a1b2c3d-0000-4111-8222-abcdefabcdef.spl"}},
		{name: "somebody's data", left: []string{"/s/data/db/v2/0123456789abcdef/part-00000", "/s/data/db/v2/0123456789abcdef/00001.block", "/s/data/a/v/0123456789abcdef/_SUCCESS",
			"/s/data/a/v/0123456789abcdef/part-00000/data", "/s/data/file", "/s/data/_dir/v/0123456789abcdef/00001.block", "/s/data/db/file", "/s/data/b/.hidden/x",
			"/s/data/db/v/0123456789abcdef/notes", "/s/other/x", "/s/sequins.lock"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _, _ := filled(t)
			expect.NoError(t, f.RemoveAll("/s/data/db/v/0123456789abcdef/tmp"))
			want := append(tree(t, f, "/s"), tt.left...)
			slices.Sort(want)
			plant(t, f, append(tt.left, tt.remove...)...)
			s := memStore(t, f)
			got := tree(t, f, "/s")
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after opening (-want +got):\n%s", diff)
			}
			wantStore(t, s, filledState)
		})
	}
}

// TestStrangers: a version is not made where somebody's data may lie, and does not count as there.
func TestStrangers(t *testing.T) {
	f, s, _ := filled(t)
	plant(t, f, "/s/data/db/v2/0123456789abcdef/part-00000", "/s/data/db/v2/0123456789abcdef/00000.block")
	before := tree(t, f, "/s")
	_, err := s.Create("db", planOf("v2", "A"))
	if err == nil || !strings.Contains(err.Error(), "/s/data/db/v2/0123456789abcdef/part-00000") {
		t.Errorf("Create over somebody's data: %v", err)
	}
	if err := s.Remove("db", input("v2")); err == nil {
		t.Error("somebody's data is removed")
	}
	if diff := cmp.Diff(before, tree(t, f, "/s")); diff != "" {
		t.Error(diff)
	}
	wantStore(t, s, filledState)

	plant(t, f, "/s/data/db/v3/0123456789abcdef/00000.block", "/s/data/db/v3/0123456789abcdef/tmp/x") // these are ours
	_, err = s.Create("db", planOf("v3", "B"))
	expect.NoError(t, err)
	wantStore(t, s, filledState, "db/v3 B []")
}

// slowFS deletes directories only when it may.
type slowFS struct {
	fsys.FS
	deleting, may chan struct{}
}

func (s slowFS) RemoveAll(name string) error {
	close(s.deleting)
	<-s.may
	return s.FS.RemoveAll(name)
}

// A removal that takes long keeps nobody from creating another content, and is waited for by who creates the same.
func TestSlowRemoval(t *testing.T) {
	slow := slowFS{fsys.OS, make(chan struct{}), make(chan struct{})}
	s, err := OpenFS(slow, t.TempDir())
	expect.NoError(t, err)
	_, err = s.Create("db", planOf("1", "string"))
	expect.NoError(t, err)
	removed, created := make(chan error, 1), make(chan error, 1)
	go func() { removed <- s.Remove("db", planOf("1", "string").Content().Input) }()
	<-slow.deleting
	_, err = s.Create("db", planOf("2", "string"))
	expect.NoError(t, err)
	go func() {
		_, err := s.Create("db", planOf("1", "string"))
		created <- err
	}()
	close(slow.may)
	expect.NoError(t, <-removed)
	expect.NoError(t, <-created)
	all, err := s.Contents("db")
	expect.NoError(t, err)
	if len(all) != 2 {
		t.Errorf("%v", all)
	}
}
