package extsort

import (
	"context"
	"io"
	"path"
	"testing"

	"sequins/internal/fsys"
	"sequins/test/expect"
)

func write(t *testing.T, fsys fsys.FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	expect.NoError(t, err)
	_, err = io.WriteString(f, content)
	expect.NoError(t, err)
	expect.NoError(t, f.Close())
}

// list returns what is in a directory.
func list(t *testing.T, fs fsys.FS, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	expect.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, path.Join(dir, e.Name()))
	}
	return names
}

// Merge finishes a sorter and merges it alone.
func (s *Sorter) Merge(ctx context.Context, yield func(key, value []byte) error) error {
	if err := s.Finish(ctx); err != nil {
		return err
	}
	return Merge(ctx, []*Sorter{s}, yield)
}
