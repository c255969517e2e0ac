package s3

import (
	"bytes"
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"sequins/source/objects"
)

// upload is a multipart upload. The parts of one that is neither completed nor aborted stay until they are removed, for
// example by a lifecycle rule of the bucket.
type upload struct {
	*store
	key  string
	id   *string
	sent []types.CompletedPart
}

// Upload begins a multipart upload.
func (s *store) Upload(ctx context.Context, key string, _ int64) (objects.Upload, error) {
	out, err := s.client.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return &upload{store: s, key: key, id: out.UploadId}, nil
}

// Part sends a part.
func (u *upload) Part(ctx context.Context, data []byte) error {
	number := aws.Int32(int32(len(u.sent) + 1))
	out, err := u.client.UploadPart(ctx, &sdk.UploadPartInput{
		Bucket: &u.bucket, Key: &u.key, UploadId: u.id, PartNumber: number, Body: bytes.NewReader(data),
	}, plainChecksums)
	if err != nil {
		return u.explain(ctx, err)
	}
	u.sent = append(u.sent, types.CompletedPart{ETag: out.ETag, PartNumber: number})
	return nil
}

// Complete makes an object of the parts.
func (u *upload) Complete(ctx context.Context, last []byte) error {
	if err := u.Part(ctx, last); err != nil {
		return err
	}
	_, err := u.client.CompleteMultipartUpload(ctx, &sdk.CompleteMultipartUploadInput{
		Bucket: &u.bucket, Key: &u.key, UploadId: u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: u.sent},
	})
	return u.explain(ctx, err)
}

// Abort removes the parts.
func (u *upload) Abort(ctx context.Context) error {
	_, err := u.client.AbortMultipartUpload(ctx, &sdk.AbortMultipartUploadInput{Bucket: &u.bucket, Key: &u.key, UploadId: u.id})
	var gone *types.NoSuchUpload
	if err == nil || errors.As(err, &gone) {
		return nil
	}
	return u.explain(ctx, err)
}
