package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"sequins/source"
)

// A failing source fails in all that concerns one version.
type failing struct {
	memory
	open, contents error
}

func (f failing) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if f.open != nil {
		return nil, f.open
	}
	return f.memory.Open(ctx, db, version, file, o)
}

func (f failing) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if f.contents != nil {
		return source.Contents{}, f.contents
	}
	return f.memory.Contents(ctx, db, version)
}

// TestFindSuccessOfUnreadable: an error that may pass is never taken for the absence of _SUCCESS.
func TestFindSuccessOfUnreadable(t *testing.T) {
	marked, unmarked := memory{"_SUCCESS": ""}, memory{"part-0": "x"}
	lasting := source.Fault(errors.New("not a regular file"))
	for name, test := range map[string]struct {
		src  failing
		want string
		err  error
	}{
		"it is there":                       {failing{memory: marked}, "1", nil},
		"it is not":                         {failing{memory: unmarked}, "", nil},
		"it is listed and cannot be opened": {failing{memory: marked, open: errBroken}, "1", nil},
		"it is not listed, nor known":       {failing{memory: unmarked, open: errBroken}, "", nil},
		"nothing can be read":               {failing{memory: marked, open: errBroken, contents: errBroken}, "", errBroken},
		"it is not a file":                  {failing{memory: marked, open: lasting}, "", nil},
		"the version is at fault":           {failing{memory: marked, open: errBroken, contents: lasting}, "", nil},
		"the version is gone":               {failing{memory: marked, open: errBroken, contents: fs.ErrNotExist}, "", nil},
	} {
		got, err := source.FindSuccess(t.Context(), test.src, "db", []string{"1"})
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, test.want, test.err)
		}
	}
}

func TestLasting(t *testing.T) {
	for _, err := range []error{
		source.Fault(errBroken), fmt.Errorf("a: %w", source.Fault(errBroken)), fmt.Errorf("b: %w", source.ErrLayout),
		&fs.PathError{Op: "open", Path: "d", Err: syscall.ELOOP},
	} {
		if !source.Lasting(err) {
			t.Errorf("%v: not lasting", err)
		}
	}
	for _, err := range []error{nil, errBroken, fs.ErrNotExist, fs.ErrPermission, context.DeadlineExceeded, source.ErrChanged} {
		if source.Lasting(err) {
			t.Errorf("%v: lasting", err)
		}
	}
}
