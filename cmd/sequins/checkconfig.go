package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sequins/config"
)

func checkConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check-config [FILE]",
		Short: "Check a configuration without starting anything",
		Long: `Check a configuration: every unknown key, wrong type and bad value in it is
reported, each with its line. FILE is sequins.conf or /etc/sequins.conf if it is
not given. Nothing on the disk but the file is looked at, so that it can be
checked on another machine.

Exits with 1 if sequins would not start with it. Keys that do nothing any more,
and more memory for loads than this machine has, are reported as warnings.`,
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
	_, warnings, err := config.Load(path)
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

func errNoConfig() error {
	return fmt.Errorf("there is no configuration: neither %s exists; name one, or give --source",
		strings.Join(config.SearchPath, " nor "))
}
