package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sequins/internal/nearest"
	"sequins/internal/term"
)

// checkUsage makes what is wrong with the arguments and flags of a command, and of those below it, a usageError.
func checkUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return withHint(cmd, err, nearestFlag(cmd, err))
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return nil
			}
			return withHint(cmd, err, nearestCommand(cmd, args))
		}
	}
	for _, sub := range cmd.Commands() {
		checkUsage(sub)
	}
}

// withHint adds to a mistake in the command line what was meant, or if that is not known, where to look.
func withHint(cmd *cobra.Command, err error, meant string) error {
	if meant != "" {
		return usageError(fmt.Errorf("%w%s", err, didYouMean(meant)))
	}
	return usageError(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
}

// didYouMean is the end of all messages about a name that is not known and may be mistyped.
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + term.Clean(name) + "?"
}

// noSubcommand rejects arguments of a command that has commands below it: they can only be unknown ones.
func noSubcommand(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("there is no command %q", args[0])
	}
	return nil
}

// nearestCommand returns the command that was meant by the first argument, "" if that is not known.
func nearestCommand(cmd *cobra.Command, args []string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if len(args) == 0 {
		return ""
	}
	return nearest.Of(args[0], names)
}

// nearestFlag returns the flag that was meant by an unknown one, "" if that is not known.
func nearestFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if name := nearest.Of(unknown.GetSpecifiedName(), names); name != "" {
		return "--" + name
	}
	return ""
}
