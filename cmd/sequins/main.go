// Command sequins serves the output of batch jobs: it loads the newest version of each database from a
// directory of files to the local disk, answers GET /db/key from there, and switches to the next
// version when one appears.
//
// This package is the command line: flags, subcommands, signals and exit codes. main.go has the root
// command, serve.go runs a node from flags and sequins.conf, demo.go one for package demo, and the
// commands that work on files without a server render what package datafile reads.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes. A second SIGINT or SIGTERM exits with 128 plus the signal's number, like in shells.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitOK
	}
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintf(stderr, "sequins: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if errors.As(err, &usageError{}) {
		return exitUsage
	}
	return exitFailure
}

func rootCommand() *cobra.Command {
	var flags serveFlags
	root := &cobra.Command{
		Use:   "sequins",
		Short: "Serve the output of batch jobs as key-value databases over HTTP",
		Long: `sequins serves the output of batch jobs. It loads the newest version of each
database under the source, <source>/<db>/<version>/<files>, onto local disk,
answers GET /<db>/<key> from there, and switches to each new version when it is
loaded.

Without a subcommand, sequins serves. It reads sequins.conf from the working
directory or from /etc. Flags override the file; with --source, no file is
needed. Variables of the environment override the file, too: SEQUINS_BIND sets
bind, and SEQUINS_SHARDING_ZONE sets zone of [sharding]. SIGHUP reads the file
again and looks for new versions. SIGTERM and SIGINT finish the requests in
flight and exit; a second one exits at once.

Exit codes: 0 after a signal, 1 on failure, 2 for an invalid command line, 130
or 143 after a second SIGINT or SIGTERM.`,
		Example: `  sequins demo
  sequins --source /srv/sequins --local-store /var/sequins
  sequins --config /etc/sequins.conf --bind 127.0.0.1:9599`,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), cmd.ErrOrStderr(), flags)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	flags.register(root)
	root.AddCommand(demoCommand(), statusCommand(), versionsCommand(), pinCommand(), unpinCommand(), rollbackCommand(), approveCommand(), refreshCommand(), diffCommand(), checkConfigCommand(), configCommand(), buildCommand(), inspectCommand(), verifyCommand(),
		getCommand(), catCommand(), manCommand(), versionCommand(), loadWorkerCommand(), kubernetesZoneCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range append(root.Commands(), root) {
		cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		})
		cmd.Args = usageArgs(cmd.Args)
	}
	return root
}

// noArguments rejects arguments of the root command, which can only be unknown commands.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("there is no command %q", args[0])
	}
	return nil
}

// usageArgs turns the errors of a check of arguments into usageErrors.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		return nil
	}
}
