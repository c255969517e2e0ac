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
}

// explain converts an error of the SDK into a short one with the server's
// message, and without users, passwords and queries of URLs.
func (s *store) explain(ctx context.Context, err error) error {
	return objects.Redact(s.shorten(ctx, err))
}

func (s *store) shorten(ctx context.Context, err error) error {
	status, region := 0, ""
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok && r.HTTPResponse() != nil {
		status, region = r.HTTPStatusCode(), r.HTTPResponse().Header.Get("X-Amz-Bucket-Region")
		err = r.Err // without the ids, as below
	}
	api, found := errors.AsType[smithy.APIError](err)
	switch {
	case status == http.StatusRequestedRangeNotSatisfiable: // maybe without a body
		return objects.ErrRange
	case !found:
		return err
	}
	meaning, known := codes[api.ErrorCode()]
	if !known {
		meaning = objects.Meaning(status)
	}
	said := api.ErrorCode()
	if m := api.ErrorMessage(); m != "" {
		said += ": " + m
	}
	switch asked := s.client.Options().Region; {
	case errors.Is(meaning, fs.ErrPermission):
		return objects.Explain(meaning, said, s.whoAsks(ctx))
	case meaning != nil:
		return objects.Explain(meaning, said, "")
	case region != "" && region != asked:
		return fmt.Errorf("the bucket is in region %s, but the request was sent to %s (%s)", region, asked, said)
	}
	return fmt.Errorf("status %d: %s", status, said) // without the ids of the request, by which an error that lasts would always be a new one
}
