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

// ProcessUser describes the user of this process.
func ProcessUser() string {
	if u, err := user.Current(); err == nil {
		return fmt.Sprintf("user %s (%d)", u.Username, os.Getuid())
	}
	return fmt.Sprintf("user %d", os.Getuid())
}
