package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
)

func checkConfigCommand() *cobra.Command {
	var asJSON, deep bool
	cmd := &cobra.Command{
		Use:   "check-config [FILE]",
		Short: "Check a configuration without starting anything",
		Long: `Check a configuration. Every unknown key, wrong type and invalid value is
reported with its line. FILE defaults to sequins.conf or /etc/sequins.conf.

The files of [tls], tokens_file, secret_file and the directory of
request_log_file are checked as at a start. A file that does not exist here or
cannot be read is a warning, so the check works on other machines. Nothing is
written or connected to. The source, the local store and the addresses are not
checked.

With --deep, the machine is checked, too, as the user and from the place where
sequins will run: the source (a byte of a file is read), secrets, the local
store and its space, the addresses, certificates, ZooKeeper and the other nodes,
the receivers of events, spans and metrics, the limit of open files and the
clock. Each check has a line, and 15 seconds. A file is made in the local store,
and znodes in a transaction that removes them; nothing is left behind.

Exits with 1 if sequins would not start because of what was checked. Retired
keys, and more memory for loads than this machine has, are reported as warnings.`,
		Example: `  sequins check-config
  sequins check-config /etc/sequins.conf
  sudo -u sequins sequins check-config --deep
  sequins check-config --json | jq -r '.errors[] | "\(.line): \(.reason)"'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := config.Find(config.SearchPath)
			if len(args) > 0 {
				path = args[0]
			}
			if path == "" && os.Getenv(config.Variable("source")) == "" {
				return errNoConfig()
			}
			if asJSON {
				return checkConfigJSON(cmd.Context(), cmd.OutOrStdout(), path, deep)
			}
			return checkConfig(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), path, deep)
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "also check what the configuration refers to: the source, ZooKeeper, the disk, …")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

// configCheck is the result of sequins check-config as JSON.
type configCheck struct {
	File     string          `json:"file"`
	Good     bool            `json:"good"`
	Errors   []configProblem `json:"errors"`
	Warnings []configProblem `json:"warnings"`
	Checks   []deepFinding   `json:"checks,omitempty"` // of --deep
}

// configProblem is an error or a warning, of a key if that is known.
type configProblem struct {
	File   string `json:"file,omitempty"` // or the variable of the environment
	Line   int    `json:"line,omitempty"`
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason"`
}

// problemsOf returns the problems in errors that may be joined.
func problemsOf(errs ...error) []configProblem {
	all := []configProblem{}
	for _, err := range errs {
		switch e := err.(type) { //nolint:errorlint // the parts of this error itself
		case nil:
		case *config.Problem:
			all = append(all, configProblem{e.File, e.Line, e.Key, e.Reason})
		case interface{ Unwrap() []error }:
			all = append(all, problemsOf(e.Unwrap()...)...)
		default:
			all = append(all, configProblem{Reason: err.Error()})
		}
	}
	return all
}

// checkConfigJSON prints the result of a check as JSON.
func checkConfigJSON(ctx context.Context, out io.Writer, path string, deep bool) error {
	c, warnings, err := checkFile(path)
	result := configCheck{File: path, Warnings: problemsOf(warnings...)}
	if err == nil && deep {
		result.Checks, err = deepFindings(ctx, c)
	}
	result.Good, result.Errors = err == nil, problemsOf(err)
	if perr := printJSON(out, result); perr != nil || err == nil {
		return perr
	}
	return inResult{err}
}

func checkConfig(ctx context.Context, out, warn io.Writer, path string, deep bool) error {
	c, warnings, err := checkFile(path)
	for _, w := range warnings {
		if _, err := fmt.Fprintln(warn, "warning:", w.Error()); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	n := len(warnings)
	if deep {
		more, err := printDeep(ctx, out, c)
		if err != nil {
			return err
		}
		n += more
	}
	verdict := "is good"
	if n > 0 {
		verdict = fmt.Sprintf("can be used; warnings: %d", n)
	}
	_, err = fmt.Fprintln(out, cmp.Or(path, "the environment"), verdict)
	return err
}

// checkFile checks a configuration and the files that it names, and returns it.
func checkFile(path string) (_ *config.Config, warnings []error, err error) {
	c, problems, err := config.Load(path)
	for _, p := range problems {
		warnings = append(warnings, p)
	}
	if err != nil {
		return nil, warnings, err
	}
	more, err := checkFiles(&c)
	return &c, append(warnings, more...), err
}

// checkFiles checks the configured files like a start does, if they exist on this machine and are
// readable.
func checkFiles(c *config.Config) (warnings []error, err error) {
	var errs []error
	for _, check := range []func(*config.Config) (warnings []error, err error){
		checkCertificates, checkTokens, checkWebhook, checkSourceSecret, checkAzureSecret, checkPeerSecret, checkZone, checkZKAuth, checkRequestLog,
	} {
		more, err := check(c)
		warnings = append(warnings, more...)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			warnings = append(warnings, fmt.Errorf("a file cannot be checked here: %w", err))
			continue
		}
		errs = append(errs, err)
	}
	return warnings, errors.Join(errs...)
}

func checkTokens(c *config.Config) ([]error, error) {
	_, err := openTokens(c.Auth, slog.New(slog.DiscardHandler))
	return nil, err
}

func checkWebhook(c *config.Config) ([]error, error) {
	_, err := target(&c.Events)
	return nil, err
}

func checkSourceSecret(c *config.Config) ([]error, error) {
	_, err := s3Secret(&c.S3)
	return nil, err
}

func checkAzureSecret(c *config.Config) ([]error, error) {
	_, err := readAzureSecrets(&c.Azure)
	return nil, err
}

func checkPeerSecret(c *config.Config) ([]error, error) {
	if !c.Sharding.Enabled {
		return nil, nil
	}
	_, err := peerSecret(&c.Sharding)
	return nil, err
}

func checkZone(c *config.Config) (warnings []error, err error) {
	if !c.Sharding.Enabled {
		return nil, nil
	}
	_, err = zone(&c.Sharding)
	return nil, err
}

func checkZKAuth(c *config.Config) ([]error, error) {
	if !c.Sharding.Enabled {
		return nil, nil
	}
	_, err := zkAuth(&c.ZK)
	return nil, err
}

// checkRequestLog checks that the file can exist. A start would create it.
func checkRequestLog(c *config.Config) (warnings []error, err error) {
	path := c.Debug.RequestLogFile
	if !c.Debug.RequestLogEnable || path == "stdout" {
		return nil, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("debug.request_log_file: %s is a directory", path)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err == nil && !dir.IsDir() {
		err = fmt.Errorf("%s is not a directory", filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("debug.request_log_file: %w", err)
	}
	return nil, nil
}

// checkCertificates checks the files of [tls]. An expired certificate is a warning if a start accepts
// it, which it does without other nodes.
func checkCertificates(c *config.Config) (warnings []error, err error) {
	keys, err := openKeyring(c.TLS, slog.New(slog.DiscardHandler))
	switch {
	case err != nil || keys == nil:
		return nil, err
	case c.Sharding.Enabled:
		host, err := advertisedHost(c.Sharding.AdvertisedHostname)
		if err == nil {
			err = keys.checkAs(host)
		}
		return nil, err
	}
	if err := keys.loaded.checkTime(time.Now()); err != nil {
		warnings = append(warnings, err)
	}
	return warnings, nil
}

func errNoConfig() error {
	return fmt.Errorf("there is no configuration: neither %s exists; name one, or give --source, or set SEQUINS_SOURCE",
		strings.Join(config.SearchPath, " nor "))
}
