package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"sequins/config"
)

// Check opens the configured files like a start does, and returns what is wrong with them. A file that is not on this machine, or
// cannot be read by this user, is a warning.
func Check(c *config.Config) (warnings []error, err error) {
	_, unread := openTokens(c.Auth, slog.New(slog.DiscardHandler))
	found, errs := []error{unread, checkCertificates(c)}, []error(nil)
	if joined, ok := c.ReadSecrets().(interface{ Unwrap() []error }); ok { //nolint:errorlint // the parts of this error itself
		found = append(joined.Unwrap(), found...)
	}
	for _, err := range found {
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
			warnings = append(warnings, fmt.Errorf("a file cannot be checked here: %w", err))
		case isExpired(err) && !c.Sharding.Enabled:
			warnings = append(warnings, err)
		default:
			errs = append(errs, err)
		}
	}
	return warnings, errors.Join(errs...)
}

// checkCertificates checks the files of [tls].
func checkCertificates(c *config.Config) error {
	host := ""
	if c.Sharding.Enabled {
		var err error
		if host, err = advertisedHost(c.Sharding.AdvertisedHostname); err != nil {
			return err
		}
	}
	_, err := openKeyring(c.TLS, host, slog.New(slog.DiscardHandler))
	return err
}
