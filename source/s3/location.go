package s3

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"sequins/source/objects"
)

// Location returns where the source of o is, as objects.Location: with the endpoint of the options, the environment or the SDK's shared
// files, if there is one. Otherwise the bucket is Amazon's, whose names are unique in a partition, so that the text has the
// partition of the region if it is not the public one. Location sends no requests.
func Location(ctx context.Context, o Options) (string, error) {
	bucket, root, err := parseURL(o.URL)
	if err != nil {
		return "", fmt.Errorf("s3: %w", err)
	}
	client, err := configuredClient(ctx, o, []func(*config.LoadOptions) error{
		config.WithDefaultsMode(aws.DefaultsModeStandard), // the mode auto asks the EC2 instance
		config.WithCredentialsProvider(aws.AnonymousCredentials{}),
	})
	if err != nil {
		return "", fmt.Errorf("s3: %w", err)
	}
	if endpoint := client.Options().BaseEndpoint; endpoint != nil && *endpoint != "" {
		return objects.Location("s3", bucket, root, *endpoint), nil
	}
	text := objects.Location("s3", bucket, root, "")
	if partition := partitionOf(client.Options().Region); partition != "aws" {
		text += " in " + partition
	}
	return text, nil
}

// partitionOf returns the partition of a region, which determines the domain of Amazon's servers.
func partitionOf(region string) string {
	for _, p := range []struct{ prefix, name string }{
		{"cn-", "aws-cn"},
		{"us-gov-", "aws-us-gov"},
		{"us-iso-", "aws-iso"},
		{"us-isob-", "aws-iso-b"},
		{"eu-isoe-", "aws-iso-e"},
		{"us-isof-", "aws-iso-f"},
		{"eusc-", "aws-eusc"},
	} {
		if strings.HasPrefix(region, p.prefix) {
			return p.name
		}
	}
	return "aws"
}
