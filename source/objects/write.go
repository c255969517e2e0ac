package objects

import (
	"bytes"
	"context"
	"errors"
	"path"

	"sequins/source"
)

// maxSmall limits the object that WriteSmall compares, in bytes.
const maxSmall = 1 << 20

// ReadSmall reads a hidden object of a database. The tag is its id.
func (s *Source) ReadSmall(ctx context.Context, db, name string, limit int) (data []byte, tag string, err error) {
	if err := source.CheckHidden(db, name); err != nil {
		return nil, "", err
	}
	key := path.Join(s.root, db, name)
	body, err := s.store.Get(ctx, key, "", 0, -1)
	if err != nil {
		return nil, "", s.fail(ctx, "read", key, err)
	}
	data, err = source.ReadAtMost(body, limit)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, "", s.fail(ctx, "read", key, err)
	}
	if tag = body.ID; tag == "" {
		tag = source.Tag(data)
	}
	return data, tag, nil
}

// WriteSmall replaces a hidden object of a database with a conditional request.
func (s *Source) WriteSmall(ctx context.Context, db, name string, data []byte, tag string) error {
	_, now, err := s.ReadSmall(ctx, db, name, maxSmall)
	key := path.Join(s.root, db, name)
	if err := source.CheckTag(now, err, tag); err != nil {
		return s.fail(ctx, "write", key, err)
	}
	err = s.store.Put(ctx, key, data, tag)
	if err == nil {
		return nil
	}
	// If the answer to a successful request was lost, its repetition fails.
	if present, _, rerr := s.ReadSmall(ctx, db, name, maxSmall); rerr == nil && bytes.Equal(present, data) {
		return nil
	}
	return s.fail(ctx, "write", key, err)
}
