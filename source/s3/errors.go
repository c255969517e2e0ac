package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"sequins/source"
	"sequins/source/objects"
)

// codes maps error codes whose meaning differs from that of the HTTP status.
var codes = map[string]error{
	"NoSuchKey":             fs.ErrNotExist,
	"NoSuchBucket":          fs.ErrNotExist,
	"AccessDenied":          fs.ErrPermission,
	"InvalidAccessKeyId":    fs.ErrPermission,
	"SignatureDoesNotMatch": fs.ErrPermission,
	"ExpiredToken":          fs.ErrPermission, // with status 400, like the next one
	"InvalidToken":          fs.ErrPermission,
	"XAdminUserNotFound":    fs.ErrPermission, // versitygw's InvalidAccessKeyId, with status 404
	"PreconditionFailed":    source.ErrChanged,

	"ConditionalRequestConflict": source.ErrChanged, // two conditional writes at once
}

// statuses maps the statuses of other codes. A 404 only counts from an S3 server.
var statuses = map[int]error{
	http.StatusUnauthorized:       fs.ErrPermission,
	http.StatusForbidden:          fs.ErrPermission,
	http.StatusPreconditionFailed: source.ErrChanged,
}

// explain converts an error of the SDK into a short one with the server's
// message, and without users, passwords and queries of URLs.
func (s *store) explain(ctx context.Context, err error) error {
	return objects.Redact(s.shorten(ctx, err))
}

func (s *store) shorten(ctx context.Context, err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	status, region := response(err)
	meaning, known := codes[api.ErrorCode()]
	if !known {
		meaning = statuses[status]
	}
	said := api.ErrorCode()
	if m := api.ErrorMessage(); m != "" {
		said += ": " + m
	}
	switch {
	case errors.Is(meaning, fs.ErrPermission):
		return fmt.Errorf("%w (%s; requested %s)", meaning, said, s.whoAsks(ctx))
	case meaning != nil:
		return fmt.Errorf("%w (%s)", meaning, said)
	case region != "" && region != s.client.Options().Region:
		return fmt.Errorf("the bucket is in region %s, but the request was sent to %s (%s)", region, s.client.Options().Region, said)
	}
	return err
}

// response returns the status and region in the response that caused an error.
func response(err error) (status int, region string) {
	var r *awshttp.ResponseError
	if !errors.As(err, &r) || r.HTTPResponse() == nil {
		return 0, ""
	}
	return r.HTTPStatusCode(), r.HTTPResponse().Header.Get("X-Amz-Bucket-Region")
}
