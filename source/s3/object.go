package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
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

// An object is what one key stood for when it was listed, or else opened.
type object struct {
	source *Source
	key    string
	limit  *rate.Limiter // asked before a request is made for so many bytes; may be nil

	// From the listing, and then from the first answer.
	etag     string // empty if the server gives none
	size     int64
	modified time.Time
}

// open makes the first request, for n bytes from offset on, and learns from
// its answer what the object is, which has to be the one that was listed, if it
// was. The body is nil if there is nothing there.
func (o *object) open(ctx context.Context, listed source.File, offset, n int64) (body io.ReadCloser, err error) {
	o.etag = listed.ID
	out, err := o.get(ctx, offset, n)
	if status, _ := response(err); status == http.StatusRequestedRangeNotSatisfiable {
		o.size = offset // or less: there is nothing to read
		if listed.Size > offset {
			return nil, fmt.Errorf("%w: it had %d bytes, and has fewer", source.ErrChanged, listed.Size)
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
		err = fmt.Errorf("asked for what is at %d, the server answers with what is at %d", offset, from)
	case offset >= o.size:
		return nil, out.Body.Close()
	default:
		return out.Body, nil
	}
	return nil, errors.Join(err, out.Body.Close())
}

// same compares the object with the one that was listed. Of their times, one
// may be a fraction of a second more exact than the other.
func (o *object) same(listed source.File) error {
	if listed.ModTime.IsZero() || o.size == listed.Size && (listed.ID == "" || strings.Trim(o.etag, `"`) == strings.Trim(listed.ID, `"`)) {
		return nil
	}
	return fmt.Errorf("%w: it was listed as %s with %d bytes, and is %s with %d", source.ErrChanged, listed.ID, listed.Size, o.etag, o.size)
}

// get asks for n bytes from offset on.
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

// extent returns which byte of the object an answer starts with, and how many
// bytes the object has.
func extent(out *sdk.GetObjectOutput) (from, size int64, err error) {
	said := aws.ToString(out.ContentRange)
	raw, ok := middleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	if said == "" && ok && raw.StatusCode == http.StatusOK {
		// The whole object: it is empty, or the server knows no ranges.
		return 0, aws.ToInt64(out.ContentLength), nil
	}
	// RFC 9110, 14.4: bytes 0-99/1234
	rest, isBytes := strings.CutPrefix(said, "bytes ")
	first, _, hasDash := strings.Cut(rest, "-")
	_, whole, hasSlash := strings.Cut(rest, "/")
	from, err1 := strconv.ParseInt(first, 10, 64)
	size, err2 := strconv.ParseInt(whole, 10, 64)
	if !isBytes || !hasDash || !hasSlash || err1 != nil || err2 != nil || from < 0 || size < from {
		return 0, 0, fmt.Errorf("the server answers with the Content-Range %q", said)
	}
	return from, size, nil
}

// fill reads b from offset on: what is left of it from body, if there is one,
// and again from where that broke off.
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
		if err := pause(ctx, failed); err != nil {
			return err
		}
	}
}

// fillOnce reads from one answer, and returns how far that went. A request
// that fails has been tried again already, and is final.
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

// check compares the object of an answer with the one that was opened: a
// server may take no notice of If-Match.
func (o *object) check(out *sdk.GetObjectOutput, offset int64) error {
	from, size, err := extent(out)
	if err != nil {
		return err
	}
	if tag, modified := aws.ToString(out.ETag), aws.ToTime(out.LastModified); tag != o.etag || size != o.size || !modified.Equal(o.modified) {
		return fmt.Errorf("%w: it was %s, %d bytes of %v, and is %s, %d bytes of %v",
			source.ErrChanged, o.etag, o.size, o.modified, tag, size, modified)
	}
	if from != offset {
		return fmt.Errorf("asked for what is at %d, the server answers with what is at %d", offset, from)
	}
	return nil
}

// gone says what errors mean that come after others of the same object have
// been answered.
func (o *object) gone(ctx context.Context, err error) error {
	if status, _ := response(err); status == http.StatusRequestedRangeNotSatisfiable {
		return fmt.Errorf("%w: it had %d bytes, and has fewer", source.ErrChanged, o.size)
	}
	if err = o.source.explain(ctx, err); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the object has gone since it was opened: %w", err)
	}
	return err
}

// A final error is one that trying again would not change.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// firstPause is the longest one after one failure.
const firstPause = 200 * time.Millisecond

// pause waits after the n-th failure in a row. It is never twice the same, so
// that parts which failed together do not come back together.
func pause(ctx context.Context, n int) error {
	d := min(maxPause, firstPause<<min(n-1, 10))
	return sleep.For(ctx, d/2+rand.N(d/2))
}
