package hdfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/internal/sleep"
	"sequins/source"
)

var _ source.Writer = (*Source)(nil)

// maxSmall limits the file that WriteSmall compares, in bytes.
const maxSmall = 1 << 20

// ReadSmall reads a hidden file of a database's directory.
func (s *Source) ReadSmall(ctx context.Context, db, name string, limit int) ([]byte, string, error) {
	return source.ReadTagged(ctx, s, db, name, limit)
}

// WriteSmall replaces a hidden file of a database's directory. The new content is written to .<name>.new beside it, which
// only one writer can create, and which its renaming removes: so it is also the lock. A writer that is killed leaves it
// behind, and the error of later calls says so.
func (s *Source) WriteSmall(ctx context.Context, db, name string, data []byte, tag string) error {
	if err := source.CheckHidden(db, name); err != nil {
		return err
	}
	x, err := s.newSession(ctx, s.retryFor)
	if err == nil {
		defer x.close()
		w := &writer{session: x, ctx: ctx, db: db, name: name, path: path.Join(s.root, db, name), tag: tag}
		w.temporary = path.Join(s.root, db, "."+name+".new")
		err = w.write(data)
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: s.display(path.Join(s.root, db, name)), Err: err}
	}
	return nil
}

// writer is one call of WriteSmall.
type writer struct {
	*session
	ctx             context.Context
	db, name, tag   string
	path, temporary string
}

func (w *writer) write(data []byte) error {
	f, err := w.create()
	if err != nil {
		return err
	}
	if err = w.unchanged(); err == nil {
		err = w.do(func() error { return w.fill(f, data) })
	}
	if err != nil {
		_ = f.Close()
		return errors.Join(err, w.do(func() error { return w.client.Remove(w.temporary) }))
	}
	// From here on, the temporary file may be another writer's: it is not removed.
	err = w.ask(func() error { return w.client.Rename(w.temporary, w.path) })
	if err == nil {
		return nil
	}
	// The answer to a successful call may have been lost.
	if present, _, rerr := w.source.ReadSmall(w.ctx, w.db, w.name, maxSmall); rerr == nil && bytes.Equal(present, data) {
		return nil
	}
	return err
}

// create creates the temporary file.
func (w *writer) create() (f *lib.FileWriter, err error) {
	err = w.ask(func() (err error) {
		f, err = w.client.Create(w.temporary)
		return err
	})
	var e lib.Error
	if errors.Is(err, fs.ErrExist) || errors.As(err, &e) && strings.HasSuffix(e.Exception(), ".AlreadyBeingCreatedException") {
		return nil, fmt.Errorf("%w: somebody else is writing it; if nobody is, a writer was killed: remove %s", source.ErrChanged, w.source.display(w.temporary))
	}
	return f, err
}

// unchanged returns an error if the file does not have the tag.
func (w *writer) unchanged() error {
	_, now, err := w.source.ReadSmall(w.ctx, w.db, w.name, maxSmall)
	return source.CheckTag(now, err, w.tag)
}

// packet is the maximum size of a write in bytes: of a longer one, the library makes packets that datanodes reject.
const packet = 1 << 16

// fill writes and closes the temporary file.
func (w *writer) fill(f *lib.FileWriter, data []byte) error {
	for len(data) > 0 {
		n := min(len(data), packet)
		if _, err := f.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return closeFile(w.session.ctx, f)
}

// closePause is the pause between two attempts to close a file.
const closePause = 20 * time.Millisecond

// closeFile closes a file when enough datanodes have reported to the namenode.
func closeFile(ctx context.Context, f *lib.FileWriter) error {
	err := f.Close()
	for lib.IsErrReplicating(err) {
		if err := sleep.For(ctx, closePause); err != nil {
			return err
		}
		err = f.Close()
	}
	return err
}
