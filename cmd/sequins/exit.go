package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"sequins/blocks"
	"sequins/internal/nearest"
	"sequins/load"
	"sequins/source"
)

// The exit codes. A second SIGINT or SIGTERM exits with 128 plus the signal's number, like in shells.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitAbsent      = 3
	exitUnhealthy   = 4
	exitUnreachable = 5
	exitUnreadable  = 6
)

// exitCodes are the names and the meanings of the exit codes, of which --help and docs/CLI.md are made.
var exitCodes = [...]struct{ name, meaning string }{
	exitOK:          {"ok", "success; of a node, after a signal"},
	exitFailure:     {"failure", "any other failure"},
	exitUsage:       {"usage", "the command line is invalid"},
	exitAbsent:      {"absent", "the key, version, database or file does not exist"},
	exitUnhealthy:   {"unhealthy", "the node answers, and is not healthy"},
	exitUnreachable: {"unreachable", "the node or the source does not answer"},
	exitUnreadable:  {"unreadable", "it is damaged, of an unknown format, or not permitted"},
}

func exitHelp() string {
	var b strings.Builder
	for code, c := range exitCodes {
		fmt.Fprintf(&b, "\n    %d  %-12s %s", code, c.name, c.meaning)
	}
	return b.String()
}

func exitName(code int) string { return exitCodes[code].name }

// usageError makes an error one in the command line.
func usageError(err error) error { return coded{err, exitUsage} }

type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

// withCode gives an error an exit code, unless it is nil or has one.
func withCode(code int, err error) error {
	if err == nil || codeOf(err) != exitFailure {
		return err
	}
	return coded{err, code}
}

// codeOf returns the exit code for an error: of several errors joined the greatest.
func codeOf(err error) (code int) {
	switch e := err.(type) { //nolint:errorlint // the chain is walked here
	case nil:
		return exitOK
	case coded:
		return e.code
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			code = max(code, codeOf(err))
		}
		return code
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return codeOf(inner)
		}
	}
	return exitFailure
}

// ofFile gives an error of a data file, or of the source that it is in, an exit code. What is neither absent nor damaged
// is the fault of a source that is remote.
func ofFile(err error, remote bool) error {
	switch {
	case errors.Is(err, load.ErrField): // the fields are those of flags or the configuration
		return err
	case errors.Is(err, fs.ErrNotExist):
		return withCode(exitAbsent, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errFormat), blocks.IsDamage(err), load.Faulty(err):
		return withCode(exitUnreadable, err)
	case remote:
		return withCode(exitUnreachable, err)
	}
	return err
}

func ofSource(src source.Source, err error) error { return ofFile(err, isRemote(src.Path("", ""))) }

// checkUsage makes what is wrong with the arguments and flags of a command, and of those below it, a usageError that says where to look.
func checkUsage(cmd *cobra.Command) {
	withHint := func(cmd *cobra.Command, err error) error {
		if err == nil || codeOf(err) == exitUsage {
			return err
		}
		return usageError(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	}
	cmd.SetFlagErrorFunc(withHint)
	if !cmd.Runnable() { // cobra would show the help of completion for any name of a shell
		cmd.Args, cmd.RunE = noSubcommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return withHint(cmd, check(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		checkUsage(sub)
	}
}

// noSubcommand rejects arguments of a command that has commands below it: they can only be unknown ones.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2 // letters
	if meant := nearest.Of(args[0], cmd.SuggestionsFor(args[0])); meant != "" {
		err = usageError(fmt.Errorf("%w%s", err, nearest.DidYouMean(meant)))
	}
	return err
}
