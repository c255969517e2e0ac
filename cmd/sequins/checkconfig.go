package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
)

func checkConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check-config [FILE]",
		Short: "Check a configuration without starting anything",
		Long: `Check a configuration. Every unknown key, wrong type and invalid value is
reported with its line. FILE defaults to sequins.conf or /etc/sequins.conf. The
certificates of [tls] are checked as at a start, if they can be read. Nothing
else on the disk is read, so the check works on other machines.

Exits with 1 if sequins would not start with this file. Retired keys, and more
memory for loads than this machine has, are reported as warnings.`,
		Example: `  sequins check-config
  sequins check-config /etc/sequins.conf`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkConfig(cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
}

func checkConfig(out, warn io.Writer, args []string) error {
	path := config.Find(config.SearchPath)
	if len(args) > 0 {
		path = args[0]
	}
	if path == "" {
		return errNoConfig()
	}
	c, problems, err := config.Load(path)
	var warnings []error
	for _, p := range problems {
		warnings = append(warnings, p)
	}
	if err == nil {
		var more []error
		more, err = checkCertificates(&c)
		warnings = append(warnings, more...)
	}
	for _, w := range warnings {
		if _, err := fmt.Fprintln(warn, "warning:", w.Error()); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	verdict := "is good"
	if n := len(warnings); n > 0 {
		verdict = fmt.Sprintf("can be used; warnings: %d", n)
	}
	_, err = fmt.Fprintln(out, path, verdict)
	return err
}

// checkCertificates checks the files of [tls] as a start does, if they are on this machine and can be read. A certificate
// that has expired is no error where a start takes it, which it does without other nodes.
func checkCertificates(c *config.Config) (warnings []error, err error) {
	keys, err := openKeyring(c.TLS, slog.New(slog.DiscardHandler))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return []error{fmt.Errorf("the certificate was not checked: %w", err)}, nil
	case err != nil || keys == nil:
		return nil, err
	case c.Sharding.Enabled:
		host, err := advertisedHost(c.Sharding.AdvertisedHostname)
		if err == nil {
			err = keys.checkAs(host)
		}
		return nil, err
	}
	switch leaf, now := keys.loaded.own.Leaf, time.Now(); {
	case now.After(leaf.NotAfter):
		warnings = append(warnings, fmt.Errorf("tls.certificate: it has expired at %s: clients will refuse it", leaf.NotAfter.Format(time.RFC3339)))
	case now.Before(leaf.NotBefore):
		warnings = append(warnings, fmt.Errorf("tls.certificate: it is valid from %s on: clients will refuse it before", leaf.NotBefore.Format(time.RFC3339)))
	}
	return warnings, nil
}

func errNoConfig() error {
	return fmt.Errorf("there is no configuration: neither %s exists; name one, or give --source",
		strings.Join(config.SearchPath, " nor "))
}
