package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"sequins/internal/names"
)

// Writer is a Source in which a small hidden file of a database's directory can be replaced. A name that is not hidden is
// an error, so that no data of a job can be overwritten.
type Writer interface {
	// ReadSmall returns the content of a file of at most limit bytes, and a tag of that content for WriteSmall. The error
	// wraps fs.ErrNotExist if there is no such file.
	ReadSmall(ctx context.Context, db, name string, limit int) (data []byte, tag string, err error)

	// WriteSmall replaces the file atomically if its content still has that tag; with an empty tag, the file must not
	// exist. Otherwise the error wraps ErrChanged, and nothing is written. Of several concurrent calls with the same tag
	// and different data, one succeeds. After any other error, the file has the old content or the new one.
	WriteSmall(ctx context.Context, db, name string, data []byte, tag string) error
}

// CheckHidden returns an error unless name is a hidden file of a database's directory, or of the source's directory if
// db is empty.
func CheckHidden(db, name string) error {
	if db != "" && !names.ValidDatabase(db) || !Hidden(name) || !names.Valid("x"+name) {
		return fmt.Errorf("%q of the database %q: %w", name, db, fs.ErrInvalid)
	}
	return nil
}

// ReadTagged implements Writer.ReadSmall for a source whose tags are those of Tag.
func ReadTagged(ctx context.Context, src Source, db, name string, limit int) (data []byte, tag string, err error) {
	if err := CheckHidden(db, name); err != nil {
		return nil, "", err
	}
	r, err := src.Open(ctx, db, "", File{Name: name}, ReadOptions{})
	if err != nil {
		return nil, "", err
	}
	data, err = ReadAtMost(r, limit)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, "", fmt.Errorf("%s in %s: %w", name, src.Path(db, ""), err)
	}
	return data, Tag(data), nil
}

// ReadAtMost reads r to its end. More than limit bytes are an error.
func ReadAtMost(r io.Reader, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return data, err
}

// Tag returns a tag of a content. It is not empty.
func Tag(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// CheckTag returns an error that wraps ErrChanged if a file does not have the tag, or, with an empty tag, exists. now and err
// are the result of reading it.
func CheckTag(now string, err error, tag string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = ""
	case err != nil:
		return err
	}
	if now != tag {
		return fmt.Errorf("%w since it was read: somebody else has written it", ErrChanged)
	}
	return nil
}
