package discovery

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sequins/internal/content"
	"sequins/source"
	"sequins/source/local"
	"sequins/test/expect"
)

// sourceOf returns a source with files of a database "db".
func sourceOf(t *testing.T, files ...string) source.Source {
	t.Helper()
	root := t.TempDir()
	for _, name := range files {
		path := filepath.Join(root, "db", name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	src, err := local.New(root)
	expect.NoError(t, err)
	return src
}

// broken is a source in which one version cannot be looked at.
type broken struct {
	source.Source
	err error
}

func (b broken) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	if version == "3" {
		return source.Contents{}, &fs.PathError{Op: "open", Path: version, Err: b.err}
	}
	return b.Source.Contents(ctx, db, version)
}

// A version that cannot be looked at does not hide older ones that have their marker.
func TestMarkedBehindUnreadable(t *testing.T) {
	src := sourceOf(t, "1/part-00000", "1/_SUCCESS", "2/part-00000", "2/_SUCCESS", "3/part-00000", "3/_SUCCESS")
	for _, err := range []error{syscall.EIO, syscall.EACCES} {
		f := Finder{Source: broken{src, err}, DB: "db", Log: slog.New(slog.DiscardHandler), Auto: true,
			Input: func(name string, _ source.Listing) content.Input {
				return content.Input{Name: name, Hash: content.Sum(name)}
			},
			Begun: func(content.Input) bool { return false }}
		found, err := f.Find(t.Context(), Question{})
		expect.NoError(t, err)
		if n := len(found.Inputs); n == 0 || found.Inputs[n-1].Name != "2" {
			t.Errorf("%v", found.Inputs)
		}
	}
}
