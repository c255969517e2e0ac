package s3_test

import (
	"testing"

	"sequins/source"
	"sequins/source/s3"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	process.Parallel(12) // they wait more than they compute
	m.Run()
}

// options are for a prefix of a gateway's bucket.
func options(endpoint, prefix string) s3.Options {
	return s3.Options{
		URL: "s3://" + gateway.Bucket + "/" + prefix, Region: gateway.Region, Endpoint: endpoint, PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey,
	}
}

// open makes a source.
func open(t testing.TB, o s3.Options) source.Source {
	t.Helper()
	src, err := s3.New(t.Context(), o)
	expect.NoError(t, err)
	return src
}
