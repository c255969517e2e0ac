package s3

import (
	"context"

	"sequins/source"
)

var _ source.Checksummer = (*Source)(nil)

// Checksum returns the ETag of a listed object. It is a hash of the content, of the parts that the object was uploaded in, or, with some
// encryption, of the encrypted content: an object with another content has another ETag, and one with the same content may have another
// one as well.
func (s *Source) Checksum(_ context.Context, _, _ string, file source.File) (string, error) {
	if file.Mark == "" {
		return "", nil
	}
	return "etag " + file.Mark, nil
}
