package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sequins/config"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show the configuration",
		Long:    "Show the configuration: see sequins config show.",
		Example: `  sequins config show --config /etc/sequins.conf`,
		Args:    noSubcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configShowCommand())
	return cmd
}

func configShowCommand() *cobra.Command {
	var flags serveFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the value of every key, and where it is from",
		Long: `Print the configuration that sequins would use with these flags in this
environment, as a file: the value of every key, and in a comment where it was
set: a line of the file, a variable of the environment (SEQUINS_BIND for bind,
SEQUINS_SHARDING_ZONE for zone of [sharding], SEQUINS_DB__words__KEEP_VERSIONS
for keep_versions of [db.words]) or a flag. Secrets are printed as ***. Of
[db.<name>] the keys are printed that are set there.

Exits with 1 if the configuration has errors, see check-config.`,
		Example: `  sequins config show
  SEQUINS_BIND=:9600 sequins config show --config /etc/sequins.conf
  sequins config show --json | jq '.[] | select(.from != "default")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return configShow(cmd.OutOrStdout(), cmd.ErrOrStderr(), &flags, asJSON)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print an array of {"key", "value", "from"}`)
	return cmd
}

func configShow(out, warn io.Writer, flags *serveFlags, asJSON bool) error {
	path, overrides, err := flags.given()
	if err != nil {
		return err
	}
	settings, warnings, err := config.Settings(path, overrides...)
	for _, w := range warnings {
		if _, err := fmt.Fprintln(warn, "warning:", w.Error()); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if asJSON {
		return settingsJSON(out, settings)
	}
	return settingsTOML(out, settings)
}

// settingsTOML writes a file of TOML: the keys of the top level are first.
func settingsTOML(out io.Writer, settings []config.Setting) error {
	table := ""
	for _, s := range settings {
		i := strings.LastIndexByte(s.Key, '.')
		if name := s.Key[:max(i, 0)]; name != table {
			table = name
			if _, err := fmt.Fprintf(out, "\n[%s]\n", table); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(out, "%s = %s  # %s\n", s.Key[i+1:], s.TOML(), s.From); err != nil {
			return err
		}
	}
	return nil
}

func settingsJSON(out io.Writer, settings []config.Setting) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(settings)
}
