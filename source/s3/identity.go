package s3

import (
	"context"
	"fmt"
)

// Identity implements source.Identified. It shows the end of the id of the access key.
func (s *Source) Identity(ctx context.Context) (string, error) {
	o := s.store.client.Options()
	if o.Credentials == nil {
		return "nobody: there are no credentials", nil
	}
	c, err := o.Credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("s3: there are no credentials: %w", err)
	}
	const shown = 4
	id := c.AccessKeyID
	if len(id) > shown {
		id = "…" + id[len(id)-shown:]
	}
	return fmt.Sprintf("access key %s, from %s, in region %s", id, c.Source, o.Region), nil
}
