package gcs

import (
	"fmt"

	"sequins/source/objects"
)

// Location returns where the source of o is, as objects.Location: with the endpoint, if it is not Google's. It reads no credentials.
func Location(o Options) (string, error) {
	bucket, root, err := parseURL(o.URL)
	if err != nil {
		return "", fmt.Errorf("gs: %w", err)
	}
	endpoint, _, err := o.endpoint()
	if err != nil {
		return "", fmt.Errorf("gs: %w", err)
	}
	if objects.CanonicalEndpoint(endpoint) == defaultEndpoint {
		endpoint = ""
	}
	return objects.Location("gs", bucket, root, endpoint), nil
}
