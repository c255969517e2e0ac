package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
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
	etag     string // empty if the server sends none
	size     int64
	modified time.Time
}

// open requests n bytes from offset, and checks that the object in the response
// is the listed one. body is nil if there is nothing to read.
func (o *object) open(ctx context.Context, listed source.File, offset, n int64) (body io.ReadCloser, err error) {
	o.etag = listed.ID
	out, err := o.get(ctx, offset, n)
	if status, _ := response(err); status == http.StatusRequestedRangeNotSatisfiable {
		o.size = offset // or less: there is nothing to read
		if listed.Size > offset {
			return nil, fmt.Errorf("%w: listed with %d bytes, now has fewer", source.ErrChanged, listed.Size)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o.etag, o.modified = aws.ToString(out.ETag), aws.ToTime(out.LastModified)
	var from int64
	if from, o.size, err = extent(out); err == nil {
		err = o.same(listed)
	}
	switch {
	case err != nil:
	case from != offset && o.size > 0:
		err = fmt.Errorf("requested offset %d, the server sent offset %d", offset, from)
	case offset >= o.size:
		return nil, out.Body.Close()
	default:
		return out.Body, nil
	}
	return nil, errors.Join(err, out.Body.Close())
}

// same compares the object with the listed one. One of the times may have a
// higher precision.
func (o *object) same(listed source.File) error {
	if listed.ModTime.IsZero() || o.size == listed.Size && (listed.ID == "" || strings.Trim(o.etag, `"`) == strings.Trim(listed.ID, `"`)) {
		return nil
	}
	return fmt.Errorf("%w: listed as %s with %d bytes, now %s with %d", source.ErrChanged, listed.ID, listed.Size, o.etag, o.size)
}

// get requests n bytes from offset.
func (o *object) get(ctx context.Context, offset, n int64) (*sdk.GetObjectOutput, error) {
	in := &sdk.GetObjectInput{
		Bucket: &o.source.bucket,
		Key:    &o.key,
		Range:  aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+n-1)),
	}
	if o.etag != "" {
		in.IfMatch = &o.etag
	}
	return o.source.client.GetObject(ctx, in)
}

// extent returns the offset of a response's first byte, and the size of the
// object.
func extent(out *sdk.GetObjectOutput) (from, size int64, err error) {
	said := aws.ToString(out.ContentRange)
	raw, ok := middleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	if said == "" && ok && raw.StatusCode == http.StatusOK {
		// The whole object: it is empty, or the server does not support ranges.
		return 0, aws.ToInt64(out.ContentLength), nil
	}
	// RFC 9110, 14.4: bytes 0-99/1234
	rest, isBytes := strings.CutPrefix(said, "bytes ")
	first, _, hasDash := strings.Cut(rest, "-")
	_, whole, hasSlash := strings.Cut(rest, "/")
	from, err1 := strconv.ParseInt(first, 10, 64)
	size, err2 := strconv.ParseInt(whole, 10, 64)
	if !isBytes || !hasDash || !hasSlash || err1 != nil || err2 != nil || from < 0 || size < from {
		return 0, 0, fmt.Errorf("invalid Content-Range %q", said)
	}
	return from, size, nil
}

// fill reads b from offset: the rest of body if it is not nil, then new requests
// where the previous stream broke.
func (o *object) fill(ctx context.Context, b []byte, offset int64, body io.ReadCloser) error {
	for failed := 0; ; {
		n, err := o.fillOnce(ctx, b, offset, body)
		if n == len(b) {
			return nil
		}
		b, offset, body = b[n:], offset+int64(n), nil
		if n > 0 {
			failed = 0
		}
		if f := (final{}); errors.As(err, &f) || ctx.Err() != nil {
			return err
		}
		if failed++; failed > o.source.maxRetries {
			return fmt.Errorf("at byte %d: %w", offset, err)
		}
		if err := sleep.For(ctx, sleep.Backoff(failed, firstPause, maxPause)); err != nil {
			return err
		}
	}
}

// fillOnce reads from one response, and returns the number of bytes. A failed
// request was already retried and is permanent.
func (o *object) fillOnce(ctx context.Context, b []byte, offset int64, body io.ReadCloser) (int, error) {
	if body == nil {
		if err := source.Wait(ctx, o.limit, int64(len(b))); err != nil {
			return 0, final{err}
		}
		out, err := o.get(ctx, offset, int64(len(b)))
		if err != nil {
			return 0, final{o.gone(ctx, err)}
		}
		body = out.Body
		if err := o.check(out, offset); err != nil {
			return 0, final{errors.Join(err, body.Close())}
		}
	}
	n, err := io.ReadFull(body, b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, errors.Join(err, body.Close())
}

// check compares the object of a response with the opened one: a server may
// ignore If-Match.
func (o *object) check(out *sdk.GetObjectOutput, offset int64) error {
	from, size, err := extent(out)
	if err != nil {
		return err
	}
	if tag, modified := aws.ToString(out.ETag), aws.ToTime(out.LastModified); tag != o.etag || size != o.size || !modified.Equal(o.modified) {
		return fmt.Errorf("%w: opened as %s, %d bytes of %v, now %s, %d bytes of %v",
			source.ErrChanged, o.etag, o.size, o.modified, tag, size, modified)
	}
	if from != offset {
		return fmt.Errorf("requested offset %d, the server sent offset %d", offset, from)
	}
	return nil
}

// gone converts errors of later requests, after the first one for the object has
// succeeded.
func (o *object) gone(ctx context.Context, err error) error {
	if status, _ := response(err); status == http.StatusRequestedRangeNotSatisfiable {
		return fmt.Errorf("%w: opened with %d bytes, now has fewer", source.ErrChanged, o.size)
	}
	if err = o.source.explain(ctx, err); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the object was deleted after it was opened: %w", err)
	}
	return err
}

// final is a permanent error: a retry would not help.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// firstPause is the maximum pause after the first failure.
const firstPause = 200 * time.Millisecond
