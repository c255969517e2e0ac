package hdfs

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"path"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/internal/sleep"
)

// Replace writes a file beside a hidden file of a database's directory, and renames it.
func (s *Source) Replace(ctx context.Context, db, name string, data []byte) error {
	to := path.Join(s.root, db, name)
	x, err := s.newSession(ctx)
	if err == nil {
		defer x.close()
		temporary := path.Join(s.root, db, "."+name+"."+rand.Text())
		if err = x.ask(func() error { return create(x.ctx, x.client, temporary, data) }); err == nil {
			err = x.ask(func() error { return x.client.Rename(temporary, to) })
		}
		if err != nil {
			_ = x.do(func() error { return x.client.Remove(temporary) }) // a hidden file: nothing depends on it
		}
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: s.display(to), Err: err}
	}
	return nil
}

// closePause is the pause between two attempts to close a file.
const closePause = 20 * time.Millisecond

// create writes a new file of one packet, which has up to 64 KiB, and closes it when enough datanodes have reported to the
// namenode.
func create(ctx context.Context, client *lib.Client, p string, data []byte) error {
	f, err := client.Create(p)
	if err != nil {
		return err
	}
	if len(data) > 0 { // an empty write would begin a block that never ends
		_, err = f.Write(data)
	}
	cerr := f.Close()
	for lib.IsErrReplicating(cerr) && sleep.For(ctx, closePause) == nil {
		cerr = f.Close()
	}
	return errors.Join(err, cerr)
}
