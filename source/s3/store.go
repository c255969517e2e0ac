package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"sequins/source/objects"
)

type store struct {
	bucket string
	client *sdk.Client
}

// URL returns the URL of a key.
func (s *store) URL(key string) string { return "s3://" + s.bucket + "/" + key }

// List returns a page of a listing. Keys may contain control characters, which XML cannot: without encoding, one such key
// would break the whole listing.
func (s *store) List(ctx context.Context, prefix string, deep bool, token string) (p objects.Page, err error) {
	in := &sdk.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
	if !deep {
		in.Delimiter = aws.String("/")
	}
	if token != "" {
		in.ContinuationToken = &token
	}
	out, err := s.client.ListObjectsV2(ctx, in, sdk.WithAPIOptions(limitAnswer))
	if err != nil {
		return p, s.explain(ctx, err)
	}
	if out.Name == nil && out.IsTruncated == nil && len(out.Contents)+len(out.CommonPrefixes) == 0 { // an empty listing says what it is of
		return p, errors.New("the server sent no listing")
	}
	p.More, p.Next = aws.ToBool(out.IsTruncated), aws.ToString(out.NextContinuationToken)
	p.Now, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
	for _, dir := range out.CommonPrefixes {
		key, err := decode(out, aws.ToString(dir.Prefix))
		if err != nil {
			return p, err
		}
		p.Dirs = append(p.Dirs, key)
	}
	for _, o := range out.Contents {
		key, err := decode(out, aws.ToString(o.Key))
		if err != nil {
			return p, err
		}
		object := objects.Object{Key: key, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified), ID: aws.ToString(o.ETag)}
		// The ETag is a hash of the content, of the parts that the object was uploaded in, or, with some encryption, of the encrypted
		// content: an object with another content has another ETag, and one with the same content may have another one as well.
		object.Sum = "etag " + object.ID
		if !strings.Contains(object.ID, "-") { // the ETag of an object of several parts ends with their number
			object.Written = object.Modified
		}
		p.Objects = append(p.Objects, object)
	}
	return p, nil
}

func limitAnswer(stack *middleware.Stack) error {
	limit := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if r, ok := out.RawResponse.(*smithyhttp.Response); ok && r.Body != nil {
			r.Body = objects.LimitAnswer(r.Body)
		}
		return out, metadata, err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("LimitAnswer", limit), middleware.After)
}

// decode returns a listed key. Keys are encoded only if the page says so: not every server supports that.
func decode(page *sdk.ListObjectsV2Output, key string) (string, error) {
	if page.EncodingType != types.EncodingTypeUrl {
		return key, nil
	}
	decoded, err := url.QueryUnescape(key)
	if err != nil {
		return "", fmt.Errorf("the server listed %q: %w", key, err)
	}
	return decoded, nil
}

// Get requests an object.
func (s *store) Get(ctx context.Context, key, id string, offset, n int64) (*objects.Body, error) {
	in := &sdk.GetObjectInput{Bucket: &s.bucket, Key: &key}
	if n >= 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+n-1))
	}
	if id != "" {
		in.IfMatch = &id
	}
	out, err := s.client.GetObject(ctx, in)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	b := &objects.Body{ReadCloser: out.Body, ID: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)}
	raw, ok := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	whole := ok && raw.StatusCode == http.StatusOK
	if b.Offset, b.Size, err = objects.Extent(whole, aws.ToString(out.ContentRange), out.ContentLength); err != nil {
		return nil, errors.Join(err, out.Body.Close())
	}
	return b, nil
}

// Put writes an object.
func (s *store) Put(ctx context.Context, key string, data []byte) error {
	withoutTrailers := func(o *sdk.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired } // older servers reject checksums there
	_, err := s.client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(data)}, withoutTrailers)
	return s.explain(ctx, err)
}
