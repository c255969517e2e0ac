package source

import (
	"context"
	"fmt"
	"os"
	"os/user"
)

// Identified is a Source that knows as whom it reads.
type Identified interface {
	// Identity describes the credentials, without showing a secret: a user, a
	// principal, or a part of the id of a key and where it is from.
	Identity(ctx context.Context) (string, error)
}

// Identity asks src as whom it reads; see Identified. It is "" if src does not know.
func Identity(ctx context.Context, src Source) (string, error) {
	if s, ok := src.(Identified); ok {
		return s.Identity(ctx)
	}
	return "", nil
}

// Located is a Source that knows where it is: the same URL can be of different servers.
type Located interface {
	// Location returns the canonical URL of the source with what else decides where it is, such as the endpoint of another server. It
	// is the same for equivalent spellings of the URL, and has no secrets and nothing of how the source is accessed.
	Location() string
}

// Location returns where src is; see Located.
func Location(src Source) string {
	if s, ok := src.(Located); ok {
		return s.Location()
	}
	return src.Path("", "")
}

// ProcessUser describes the user of this process.
func ProcessUser() string {
	if u, err := user.Current(); err == nil {
		return fmt.Sprintf("user %s (%d)", u.Username, os.Getuid())
	}
	return fmt.Sprintf("user %d", os.Getuid())
}
