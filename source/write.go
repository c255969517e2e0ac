package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"sequins/internal/names"
)

// maxSmall limits the file that WriteSmall compares, in bytes.
const maxSmall = 64 << 10

// checkHidden returns an error unless name is a hidden file of a database's directory, or of the source's directory if
// db is empty.
func checkHidden(db, name string) error {
	if db != "" && !names.ValidDatabase(db) || !Hidden(name) || !names.Valid("x"+name) {
		return fmt.Errorf("%q of the database %q: %w", name, db, fs.ErrInvalid)
	}
	return nil
}

// VersionPath returns the path of a version's directory relative to the source's.
func VersionPath(db, version string) (string, error) {
	if !names.ValidDatabase(db) || !names.Valid(version) {
		return "", fs.ErrNotExist
	}
	return db + "/" + version, nil
}

// FilePath returns the path of a file that Open opens, relative to the source's directory. It checks the offset, too.
func FilePath(db, version, name string, o ReadOptions) (file string, err error) {
	file = db + "/" + name
	if version != "" || checkHidden(db, name) != nil {
		file, err = VersionPath(db, version)
		file += "/" + name
	}
	if err == nil && (!ValidFile(name) || o.Offset < 0) {
		err = fs.ErrInvalid
	}
	return file, err
}

// ReadSmall returns the content of a hidden file of a database's directory. The error wraps fs.ErrNotExist if there is
// none.
func ReadSmall(ctx context.Context, src Source, db, name string, limit int) ([]byte, error) {
	if err := checkHidden(db, name); err != nil {
		return nil, err
	}
	r, err := src.Open(ctx, db, "", File{Name: name}, ReadOptions{})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", name, src.Path(db, ""), err)
	}
	return data, nil
}

// WriteSmall replaces a hidden file of a database's directory, or of the source's if db is empty. Its content was old when it
// was read, nil for no file; if it is not any more, the error wraps ErrChanged, and nothing is written. Nothing is locked: of
// two calls at the same instant, the later one wins. A name that is not hidden is an error, so that no data of a job can be
// overwritten.
func WriteSmall(ctx context.Context, src Source, db, name string, data, old []byte) error {
	now, err := ReadSmall(ctx, src, db, name, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		now, err = nil, nil
	}
	if err == nil && ((now == nil) != (old == nil) || !bytes.Equal(now, old)) {
		err = &fs.PathError{Op: "write", Path: src.Path(db, "") + "/" + name, Err: fmt.Errorf("%w since it was read: somebody else has written it", ErrChanged)}
	}
	if err != nil {
		return err
	}
	err = src.Replace(ctx, db, name, data)
	if errors.Is(err, fs.ErrNotExist) { // its directory, and not the temporary file that the error may name
		err = &fs.PathError{Op: "write to", Path: src.Path(db, ""), Err: fs.ErrNotExist}
	}
	return err
}
