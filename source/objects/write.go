package objects

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"sequins/source"
)

// WriteSmall replaces a hidden object of a database with a conditional request.
func (s *Source) WriteSmall(ctx context.Context, db, name string, data, old []byte) error {
	if err := source.CheckHidden(db, name); err != nil {
		return err
	}
	key, id := path.Join(s.root, db, name), ""
	body, err := s.store.Get(ctx, key, "", 0, -1)
	if err == nil {
		id, err = body.ID, body.Close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = source.CheckSmall(ctx, s, db, name, old)
	}
	if err == nil {
		if err = s.store.Put(ctx, key, data, id); err != nil && source.IsSmall(ctx, s, db, name, data) {
			err = nil
		}
	}
	if err != nil {
		return s.fail(ctx, "write", key, err)
	}
	return nil
}
