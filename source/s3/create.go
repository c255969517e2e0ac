package s3

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"sequins/source"
)

var _ source.Creator = (*Source)(nil)

const (
	// uploadPart is the least size of a part of an upload, in bytes. A smaller object is sent in one request.
	uploadPart = 8 << 20
	// maxParts is how many parts an upload has at most; S3 allows 10,000. Parts are of one size, as some servers require.
	maxParts = 9000
	// abortTimeout limits the removal of the parts of an upload.
	abortTimeout = 10 * time.Second
)

// Create begins an object of a version. It is sent in parts, which no listing shows until Commit makes an object of
// them. Parts of a process that was killed stay until they are removed, for example by a lifecycle rule of the bucket.
func (s *Source) Create(ctx context.Context, db, version, name string, size int64) (source.FileWriter, error) {
	if err := errors.Join(ctx.Err(), source.CheckCreate(db, version, name)); err != nil {
		return nil, err
	}
	part := max(uploadPart, (size+maxParts-1)/maxParts)
	return &created{
		source: s, ctx: ctx, key: path.Join(s.root, db, version, name), size: size,
		part: make([]byte, 0, min(part, size)), most: int(part),
	}, nil
}

// created is an object that is being written.
type created struct {
	source        *Source
	ctx           context.Context
	key           string
	size, written int64
	part          []byte  // not sent yet
	most          int     // length of a full part
	upload        *string // id; nil before the first part is sent
	sent          []types.CompletedPart
	done          bool
}

func (c *created) fail(err error) error { return c.source.fail(c.ctx, "write", c.key, err) }

// Write sends each part when it is full, unless it is the only one.
func (c *created) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if len(c.part) == c.most {
			if err := c.send(); err != nil {
				return n, c.fail(err)
			}
		}
		took := min(len(p)-n, c.most-len(c.part))
		c.part = append(c.part, p[n:n+took]...)
		n += took
		c.written += int64(took)
	}
	return n, nil
}

// send sends the gathered part.
func (c *created) send() error {
	if c.upload == nil {
		out, err := c.source.client.CreateMultipartUpload(c.ctx, &sdk.CreateMultipartUploadInput{Bucket: &c.source.bucket, Key: &c.key})
		if err != nil {
			return err
		}
		c.upload = out.UploadId
	}
	number := aws.Int32(int32(len(c.sent) + 1))
	out, err := c.source.client.UploadPart(c.ctx, &sdk.UploadPartInput{
		Bucket: &c.source.bucket, Key: &c.key, UploadId: c.upload, PartNumber: number, Body: bytes.NewReader(c.part),
	}, plainChecksums)
	if err != nil {
		return err
	}
	c.sent = append(c.sent, types.CompletedPart{ETag: out.ETag, PartNumber: number})
	c.part = c.part[:0]
	return nil
}

// Commit makes an object of the parts.
func (c *created) Commit() error {
	err := source.CheckWritten(c.written, c.size)
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return errors.Join(c.fail(err), c.Abort())
	}
	c.done, c.part = true, nil
	return nil
}

func (c *created) finish() error {
	if c.upload == nil {
		return c.source.put(c.ctx, &sdk.PutObjectInput{Bucket: &c.source.bucket, Key: &c.key, Body: bytes.NewReader(c.part)})
	}
	if err := c.send(); err != nil {
		return err
	}
	_, err := c.source.client.CompleteMultipartUpload(c.ctx, &sdk.CompleteMultipartUploadInput{
		Bucket: &c.source.bucket, Key: &c.key, UploadId: c.upload, MultipartUpload: &types.CompletedMultipartUpload{Parts: c.sent},
	})
	return err
}

// Abort removes the parts.
func (c *created) Abort() error {
	if c.done || c.upload == nil {
		return nil
	}
	c.done, c.part = true, nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), abortTimeout)
	defer cancel()
	_, err := c.source.client.AbortMultipartUpload(ctx, &sdk.AbortMultipartUploadInput{Bucket: &c.source.bucket, Key: &c.key, UploadId: c.upload})
	var gone *types.NoSuchUpload
	if err == nil || errors.As(err, &gone) {
		return nil
	}
	return c.source.fail(ctx, "abort the upload of", c.key, err)
}

// plainChecksums omits the checksums in trailers that older servers reject.
func plainChecksums(o *sdk.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}

// Remove removes objects of a version. There are no directories.
func (s *Source) Remove(ctx context.Context, db, version string, names ...string) error {
	dir := path.Join(s.root, db, version)
	keys := []string{}
	for _, name := range names {
		if !source.ValidFile(name) {
			return &fs.PathError{Op: "remove", Path: s.display(path.Join(dir, name)), Err: fs.ErrInvalid}
		}
		keys = append(keys, path.Join(dir, name))
	}
	for _, key := range keys {
		if _, err := s.client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: &s.bucket, Key: &key}); err != nil {
			return s.fail(ctx, "remove", key, err)
		}
	}
	return nil
}
