package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/node/daemon"
)

func checkConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check-config [FILE]",
		Short: "Check a configuration without starting anything",
		Long: `Check a configuration. Every unknown key, wrong type and invalid value is
reported with its line. FILE defaults to sequins.conf or /etc/sequins.conf.

The files of [tls], tokens and secrets are checked as at a start. A file that does
not exist here or cannot be read is a warning, so the check works on other
machines. Nothing is written or connected to. The source, the local store, the
request log and the addresses are not checked.

Exits with 1 if sequins would not start because of what was checked. Retired
keys, and more memory for loads than this machine has, are reported as warnings.`,
		Example: `  sequins check-config
  sequins check-config /etc/sequins.conf`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := config.Find(config.SearchPath)
			if len(args) > 0 {
				path = args[0]
			}
			if path == "" && os.Getenv(config.Variable("source")) == "" {
				return errNoConfig()
			}
			return checkConfig(cmd, path)
		},
	}
}

// checkConfig checks a configuration and the files that it names, and prints the result.
func checkConfig(cmd *cobra.Command, path string) error {
	c, problems, err := config.Load(path)
	var warnings []error
	for _, p := range problems {
		warnings = append(warnings, p)
	}
	if err == nil {
		var more []error
		more, err = daemon.Check(&c)
		warnings = append(warnings, more...)
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w.Error()) // an error does not keep the verdict from being printed
	}
	if err != nil {
		return err
	}
	verdict := "is good"
	if len(warnings) > 0 {
		verdict = fmt.Sprintf("can be used; warnings: %d", len(warnings))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), cmp.Or(path, "the environment"), verdict)
	return err
}

func errNoConfig() error {
	return fmt.Errorf("there is no configuration: neither %s exists; name one, or give --source, or set SEQUINS_SOURCE",
		strings.Join(config.SearchPath, " nor "))
}

func configCommand() *cobra.Command {
	var flags serveFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the value of every key, and where it is from",
		Long: `Print the configuration that sequins would use with these flags in this
environment, as a file: the value of every key, and in a comment where it was
set: a line of the file, a variable of the environment (SEQUINS_BIND for bind,
SEQUINS_SHARDING_ZONE for zone of [sharding], SEQUINS_DB__words__KEEP_VERSIONS
for keep_versions of [db.words]) or a flag. Secrets are printed as ***. Of
[db.<name>] the keys are printed that are set there.

Exits with 1 if the configuration has errors, see check-config.`,
		Example: `  sequins config
  SEQUINS_BIND=:9600 sequins config --config /etc/sequins.conf
  sequins config --json | jq '.[] | select(.from != "default")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showConfig(cmd.OutOrStdout(), cmd.ErrOrStderr(), &flags, asJSON)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print an array of {"key", "value", "from"}`)
	return cmd
}

func showConfig(out, warn io.Writer, flags *serveFlags, asJSON bool) error {
	given, err := flags.given()
	if err != nil {
		return err
	}
	settings, warnings, err := config.Settings(given.Path, given.Flags...)
	for _, w := range warnings {
		_, _ = fmt.Fprintln(warn, "warning:", w.Error()) // an error does not keep the configuration from being printed
	}
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, settings)
	}
	var text strings.Builder
	table := "" // the keys of the top level are first
	for _, s := range settings {
		i := strings.LastIndexByte(s.Key, '.')
		if name := s.Key[:max(i, 0)]; name != table {
			table = name
			fmt.Fprintf(&text, "\n[%s]\n", table)
		}
		fmt.Fprintf(&text, "%s = %s  # %s\n", s.Key[i+1:], s.TOML(), s.From)
	}
	_, err = io.WriteString(out, text.String())
	return err
}
