package s3

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"path"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"sequins/source"
)

var _ source.Writer = (*Source)(nil)

// maxSmall limits the object that WriteSmall compares, in bytes.
const maxSmall = 1 << 20

// ReadSmall reads a hidden object of a database. The tag is its ETag.
func (s *Source) ReadSmall(ctx context.Context, db, name string, limit int) (data []byte, tag string, err error) {
	if err := source.CheckHidden(db, name); err != nil {
		return nil, "", err
	}
	key := path.Join(s.root, db, name)
	out, err := s.client.GetObject(ctx, &sdk.GetObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return nil, "", s.fail(ctx, "read", key, err)
	}
	data, err = source.ReadAtMost(out.Body, limit)
	if err = errors.Join(err, out.Body.Close()); err != nil {
		return nil, "", s.fail(ctx, "read", key, err)
	}
	if tag = aws.ToString(out.ETag); tag == "" {
		tag = source.Tag(data)
	}
	return data, tag, nil
}

// WriteSmall replaces a hidden object of a database with a conditional request. A server that does not implement those gets
// a plain one: then, of two that write at the same instant, both may succeed.
func (s *Source) WriteSmall(ctx context.Context, db, name string, data []byte, tag string) error {
	_, now, err := s.ReadSmall(ctx, db, name, maxSmall)
	key := path.Join(s.root, db, name)
	if err := source.CheckTag(now, err, tag); err != nil {
		return s.fail(ctx, "write", key, err)
	}
	in := &sdk.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(data), IfNoneMatch: aws.String("*")}
	if tag != "" {
		in.IfMatch, in.IfNoneMatch = &tag, nil
	}
	err = s.put(ctx, in)
	if status, _ := response(err); status == http.StatusNotImplemented {
		in.Body, in.IfMatch, in.IfNoneMatch = bytes.NewReader(data), nil, nil
		err = s.put(ctx, in)
	}
	if err == nil {
		return nil
	}
	// If the answer to a successful request was lost, its repetition fails.
	if present, _, rerr := s.ReadSmall(ctx, db, name, maxSmall); rerr == nil && bytes.Equal(present, data) {
		return nil
	}
	return s.fail(ctx, "write", key, err)
}

// put sends a request without the checksums in trailers that older servers reject.
func (s *Source) put(ctx context.Context, in *sdk.PutObjectInput) error {
	_, err := s.client.PutObject(ctx, in, plainChecksums)
	return err
}
