package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/internal/sleep"
	"sequins/source"
)

// WriteSmall replaces a hidden file of a database's directory. The new content is written to .<name>.new beside it, which
// only one writer can create, and which its renaming removes: so it is also the lock. A writer that is killed leaves it
// behind, and the error of later calls says so.
func (s *Source) WriteSmall(ctx context.Context, db, name string, data, old []byte) error {
	if err := source.CheckHidden(db, name); err != nil {
		return err
	}
	to := path.Join(s.root, db, name)
	x, err := s.newSession(ctx, s.retryFor)
	if err == nil {
		defer x.close()
		temporary := path.Join(s.root, db, "."+name+".new")
		err = x.writeTemporary(temporary, data, func() error { return source.CheckSmall(ctx, s, db, name, old) })
		if err == nil { // from here on, the temporary file may be another writer's: it is not removed
			err = x.ask(func() error { return x.client.Rename(temporary, to) })
			if err != nil && source.IsSmall(ctx, s, db, name, data) {
				err = nil
			}
		}
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: s.display(to), Err: err}
	}
	return nil
}

// writeTemporary creates and writes a file that must not exist. It removes the file again if allowed, which is called in
// between, returns an error.
func (x *session) writeTemporary(p string, data []byte, allowed func() error) error {
	var f *lib.FileWriter
	err := x.ask(func() (err error) {
		f, err = x.client.Create(p)
		return err
	})
	var e lib.Error
	if errors.Is(err, fs.ErrExist) || errors.As(err, &e) && strings.HasSuffix(e.Exception(), ".AlreadyBeingCreatedException") {
		return fmt.Errorf("%w: somebody else is writing it; if nobody is, a writer was killed: remove %s", source.ErrChanged, x.source.display(p))
	}
	if err != nil {
		return err
	}
	if err = allowed(); err == nil {
		err = x.do(func() error { return fill(x.ctx, f, data) })
	}
	if err != nil {
		_ = f.Close()
		return errors.Join(err, x.do(func() error { return x.client.Remove(p) }))
	}
	return nil
}

// packet is the maximum size of a write in bytes: of a longer one, the library makes packets that datanodes reject.
const packet = 1 << 16

// closePause is the pause between two attempts to close a file.
const closePause = 20 * time.Millisecond

// fill writes a file, and closes it when enough datanodes have reported to the namenode.
func fill(ctx context.Context, f *lib.FileWriter, data []byte) error {
	for some := range slices.Chunk(data, packet) {
		if _, err := f.Write(some); err != nil {
			return err
		}
	}
	err := f.Close()
	for lib.IsErrReplicating(err) {
		if err := sleep.For(ctx, closePause); err != nil {
			return err
		}
		err = f.Close()
	}
	return err
}
