package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
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
)

const (
	// idleConnections are kept open between requests, for readers at full
	// speed.
	idleConnections = 64

	// maxPause is the longest one between two attempts.
	maxPause = 10 * time.Second

	// instanceTimeout is how long the instance this runs on may take to say
	// in which region it is.
	instanceTimeout = 5 * time.Second
)

// newClient resolves what the options leave open as all programs that use the
// SDK do.
func newClient(ctx context.Context, o Options, conns *connections) (*sdk.Client, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(newHTTPClient(conns)),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer { return newRetryer(o.MaxRetries) }),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.AccessKeyID != "" {
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, "")))
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
		c.DisableLogOutputChecksumValidationSkipped = true // ranges have none
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

func checkOptions(o Options) error {
	if (o.AccessKeyID == "") != (o.SecretAccessKey == "") {
		return errors.New("of access_key_id and secret_access_key one is empty: set both or neither")
	}
	if o.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("endpoint: %q is not an http:// or https:// URL", o.Endpoint)
	}
	return nil
}

// findRegion asks the instance that this runs on. Other servers than Amazon's
// mostly take any region, and this one.
func findRegion(ctx context.Context, endpoint *string, load []func(*config.LoadOptions) error) (string, error) {
	if endpoint != nil {
		return "us-east-1", nil
	}
	ctx, cancel := context.WithTimeout(ctx, instanceTimeout)
	defer cancel()
	conf, err := config.LoadDefaultConfig(ctx, append(load, config.WithEC2IMDSRegion())...)
	if err != nil || conf.Region == "" {
		return "", errors.Join(errors.New("the bucket's region is not known: set region in [s3], or AWS_REGION"), err)
	}
	return conf.Region, nil
}

// newHTTPClient is the SDK's own kind of client, so that what the environment
// says of proxies and certificates holds. It speaks HTTP/1.1, for parts that
// share one connection would be no faster than one.
func newHTTPClient(conns *connections) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithReadTimeout(0).WithTransportOptions(func(t *http.Transport) {
		t.DialContext = conns.dial
		t.ForceAttemptHTTP2 = false
		t.TLSHandshakeTimeout = conns.timeout
		t.MaxIdleConns = 2 * idleConnections
		t.MaxIdleConnsPerHost = idleConnections
	})
}

// newRetryer tries again without the SDK's quota, which all requests share and
// which a server that is away for a moment would use up: pauses are enough.
func newRetryer(retries int) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = retries + 1
		o.MaxBackoff = maxPause
		o.RateLimiter = ratelimit.None
		o.Retryables = append([]retry.IsErrorRetryable{retry.NoRetryCanceledError{}},
			append(o.Retryables,
				retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}},
				retry.IsErrorRetryableFunc(brokenAnswer))...)
	})
}

// brokenAnswer recognizes answers that end before they are complete. To the
// SDK these are answers that cannot be parsed, and final.
func brokenAnswer(err error) aws.Ternary {
	for _, broken := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, os.ErrDeadlineExceeded} {
		if errors.Is(err, broken) {
			return aws.TrueTernary
		}
	}
	return aws.UnknownTernary
}

// whoAsks says with which access key requests are signed, for errors.
func (s *Source) whoAsks(ctx context.Context) string {
	provider := s.client.Options().Credentials
	if provider == nil {
		return "anonymously"
	}
	c, err := provider.Retrieve(ctx)
	if err != nil || c.AccessKeyID == "" {
		return "without an access key"
	}
	where := cmp.Or(c.Source, "nowhere known")
	if where == credentials.StaticCredentialsName {
		where = "the configuration"
	}
	return fmt.Sprintf("with the access key %s, from %s", c.AccessKeyID, where)
}
