package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"sequins/source/objects"
)

// instanceTimeout bounds the request for the region of the EC2 instance.
const instanceTimeout = 5 * time.Second

// newClient returns a client. Settings that the options leave empty are resolved
// by the SDK.
func newClient(ctx context.Context, o Options) (*sdk.Client, error) {
	o.AccessKeyID, o.SecretAccessKey = strings.TrimSpace(o.AccessKeyID), strings.TrimSpace(o.SecretAccessKey)
	if (o.AccessKeyID == "") != (o.SecretAccessKey == "") {
		return nil, errors.New("access_key_id and secret_access_key: set both or neither")
	}
	if o.Endpoint != "" {
		if _, err := objects.ParseEndpoint(o.Endpoint); err != nil {
			return nil, err
		}
	}
	load := []func(*config.LoadOptions) error{
		// The SDK's client uses the proxies and certificates of the environment.
		config.WithHTTPClient(awshttp.NewBuildableClient().WithReadTimeout(0).WithTransportOptions(o.Configure)),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer { return newRetryer(o.Retries()) }),
	}
	if o.AccessKeyID != "" {
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, "")))
	} else if provider := trimmedVariables(); provider != nil {
		load = append(load, config.WithCredentialsProvider(provider))
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	conf, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, err
	}
	client := sdk.NewFromConfig(conf, func(c *sdk.Options) {
		if o.Endpoint != "" {
			c.BaseEndpoint = &o.Endpoint
		}
		c.UsePathStyle = o.PathStyle
		c.DisableLogOutputChecksumValidationSkipped = true // ranges have no checksum
	})
	if client.Options().Region != "" {
		return client, nil
	}
	region, err := findRegion(ctx, client.Options().BaseEndpoint, load)
	if err != nil {
		return nil, err
	}
	return sdk.New(client.Options(), func(c *sdk.Options) { c.Region = region }), nil
}

// trimmedVariables returns the access key of the environment if there is white space around it, such as the newline at the end of
// many Kubernetes Secrets, which the SDK would sign with; otherwise nil.
func trimmedVariables() aws.CredentialsProvider {
	env, err := config.NewEnvConfig()
	if err != nil || !env.Credentials.HasKeys() {
		return nil
	}
	c := env.Credentials
	c.AccessKeyID, c.SecretAccessKey, c.SessionToken = strings.TrimSpace(c.AccessKeyID), strings.TrimSpace(c.SecretAccessKey), strings.TrimSpace(c.SessionToken)
	if c == env.Credentials {
		return nil
	}
	return credentials.StaticCredentialsProvider{Value: c}
}

// findRegion asks the EC2 instance for its region. For servers other than
// Amazon's it falls back to a default, which most of them accept.
func findRegion(ctx context.Context, endpoint *string, load []func(*config.LoadOptions) error) (string, error) {
	if endpoint != nil {
		return "us-east-1", nil
	}
	ctx, cancel := context.WithTimeout(ctx, instanceTimeout)
	defer cancel()
	conf, err := config.LoadDefaultConfig(ctx, append(load, config.WithEC2IMDSRegion())...)
	if err != nil || conf.Region == "" {
		return "", errors.Join(errors.New("the bucket's region is unknown: set region in [s3], or AWS_REGION"), err)
	}
	return conf.Region, nil
}

// newRetryer retries without the SDK's quota, which all requests share and which
// a short outage would use up. Pauses limit the load.
func newRetryer(retries int) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = retries + 1
		o.MaxBackoff = objects.MaxPause
		o.RateLimiter = ratelimit.None
		o.Retryables = append([]retry.IsErrorRetryable{retry.NoRetryCanceledError{}},
			append(o.Retryables,
				retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}},
				retry.IsErrorRetryableFunc(brokenAnswer))...)
	})
}

// brokenAnswer makes truncated responses retryable. The SDK treats them as
// permanent parse errors.
func brokenAnswer(err error) aws.Ternary {
	for _, broken := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, os.ErrDeadlineExceeded} {
		if errors.Is(err, broken) {
			return aws.TrueTernary
		}
	}
	return aws.UnknownTernary
}

// whoAsks describes the access key that signs requests, for errors.
func (s *store) whoAsks(ctx context.Context) string {
	provider := s.client.Options().Credentials
	if provider == nil {
		return "anonymously"
	}
	c, err := provider.Retrieve(ctx)
	if err != nil || c.AccessKeyID == "" {
		return "without an access key"
	}
	where := cmp.Or(c.Source, "an unknown provider")
	if where == credentials.StaticCredentialsName {
		where = "the configuration"
	}
	return fmt.Sprintf("with the access key %s, from %s", c.AccessKeyID, where)
}
