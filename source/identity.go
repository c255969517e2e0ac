package source

import (
	"fmt"
	"os"
	"os/user"
)

// ProcessUser describes the user of this process.
func ProcessUser() string {
	if u, err := user.Current(); err == nil {
		return fmt.Sprintf("user %s (%d)", u.Username, os.Getuid())
	}
	return fmt.Sprintf("user %d", os.Getuid())
}
