package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"sequins/internal/sleep"
	"sequins/source"
)

// object is the object of a key as it was listed or opened.
type object struct {
	source *Source
	key    string
	limit  *rate.Limiter // limits the bytes requested; may be nil

	// From the listing, then from the first response.
	id       string
	size     int64
	modified time.Time
}

// open requests n bytes from offset, and checks that the object in the response
// is the listed one. body is nil if there is nothing to read.
func (o *object) open(ctx context.Context, listed source.File, offset, n int64) (*Body, error) {
	body, err := o.source.store.Get(ctx, o.key, condition(listed.Mark), offset, n)
	if errors.Is(err, ErrRange) {
		o.size = offset // or less: there is nothing to read
		if listed.Size > offset {
			return nil, fmt.Errorf("%w: listed with %d bytes, now has fewer", source.ErrChanged, listed.Size)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o.id, o.size, o.modified = cmp.Or(listed.Mark, body.ID), body.Size, body.Modified
	if !listed.ModTime.IsZero() {
		o.size = listed.Size
	}
	if err := o.check(body, offset); err != nil {
		return nil, errors.Join(err, body.Close())
	}
	if offset >= o.size {
		return nil, body.Close()
	}
	return body, nil
}

// strong returns an ETag without quotes, and without the sign of a weak one: a proxy that compresses answers makes an ETag
// weak (RFC 9110, section 8.8.3.2).
func strong(id string) string { return strings.Trim(strings.TrimPrefix(id, "W/"), `"`) }

// condition returns the id that a request asks for; none in place of a weak ETag, which no condition matches.
func condition(id string) string {
	if strings.HasPrefix(id, "W/") {
		return ""
	}
	return id
}

// fill reads b from offset: the rest of body if it is not nil, then new requests
// where the previous stream broke.
func (o *object) fill(ctx context.Context, b []byte, offset int64, body *Body) error {
	for failed := 0; len(b) > 0; {
		if body == nil {
			var err error
			if body, err = o.request(ctx, offset, int64(len(b))); err != nil {
				return err
			}
		}
		n, err := io.ReadFull(body, b)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		err = errors.Join(err, body.Close())
		b, offset, body = b[n:], offset+int64(n), nil
		if n > 0 {
			failed = 0
		}
		if len(b) == 0 {
			continue
		}
		if ctx.Err() != nil {
			return err
		}
		if failed++; failed > o.source.retries {
			return fmt.Errorf("at byte %d: %w", offset, err)
		}
		if err := sleep.For(ctx, sleep.Backoff(failed, firstPause, MaxPause)); err != nil {
			return err
		}
	}
	return nil
}

// request requests n bytes of the opened object from offset. A failed request was already retried and is permanent.
func (o *object) request(ctx context.Context, offset, n int64) (*Body, error) {
	if err := source.Wait(ctx, o.limit, n); err != nil {
		return nil, err
	}
	body, err := o.source.store.Get(ctx, o.key, condition(o.id), offset, n)
	switch {
	case errors.Is(err, ErrRange):
		return nil, fmt.Errorf("%w: opened with %d bytes, now has fewer", source.ErrChanged, o.size)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the object was deleted after it was opened: %w", err)
	case err != nil:
		return nil, err
	}
	if err := o.check(body, offset); err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return body, nil
}

// check compares the object of a response with the listed or opened one: a server may
// ignore the condition.
func (o *object) check(body *Body, offset int64) error {
	if body.ID == "" {
		return fmt.Errorf("%w: the answer is not an object's, as it has no ETag or generation", source.ErrChanged)
	}
	if strong(body.ID) != strong(o.id) || body.Size != o.size || !body.Modified.Equal(o.modified) {
		return fmt.Errorf("%w: it was %s, %d bytes of %v, and is now %s, %d bytes of %v",
			source.ErrChanged, o.id, o.size, o.modified, body.ID, body.Size, body.Modified)
	}
	if body.Offset != offset && offset < o.size {
		return fmt.Errorf("requested offset %d, the server sent offset %d", offset, body.Offset)
	}
	return nil
}
