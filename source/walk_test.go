package source_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"sequins/source"
)

// slowTree is a directory of three files, whose context ends while the first is described.
type slowTree struct {
	cancel    func()
	described int
}

func (t *slowTree) ReadDir(string) ([]fs.DirEntry, error) {
	return fstest.MapFS{"a": {}, "b": {}, "c": {}}.ReadDir(".")
}

func (t *slowTree) Describe(name string, _ fs.DirEntry) (source.Marker, error) {
	t.cancel()
	t.described++
	return source.Marker{File: source.File{Name: name}}, nil
}

// A listing ends with its context, also within a directory.
func TestWalkEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tree := &slowTree{cancel: cancel}
	if _, err := source.Walk(ctx, tree); !errors.Is(err, context.Canceled) || tree.described != 1 {
		t.Errorf("%v after %d files", err, tree.described)
	}
}
