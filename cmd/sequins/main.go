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
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sequins/internal/nearest"
	"sequins/internal/term"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if readerHasGone(err) {
		return exitPipe
	}
	if err != nil {
		tell(cmd, err)
	}
	return codeOf(err)
}

// exitPipe is the exit code of a process that SIGPIPE ends, as it does here where that signal is not ignored.
const exitPipe = 128 + int(syscall.SIGPIPE)

// readerHasGone reports whether an error says that nobody reads the output any more, as after "| head".
func readerHasGone(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Path == os.Stdout.Name() && errors.Is(failed.Err, syscall.EPIPE)
}

// tell prints the error that has ended a command, also as JSON for one with --json that has no other result.
func tell(cmd *cobra.Command, err error) {
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sequins: %s\n", term.Clean(strings.TrimSuffix(line, "\n")))
	}
	if asJSON, _ := cmd.Flags().GetBool("json"); !asJSON || errors.As(err, &inResult{}) {
		return
	}
	_ = printJSON(cmd.OutOrStdout(), errorResult(err)) // the exit code remains
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

Colors are used on terminals, unless NO_COLOR is set or TERM is dumb, and
elsewhere if CLICOLOR_FORCE is set.

Exit codes of all commands; 130 or 143 after a second SIGINT or SIGTERM:
` + exitHelp(),
		Example: `  sequins demo
  sequins --source /srv/sequins --local-store /var/sequins
  sequins --config /etc/sequins.conf --bind 127.0.0.1:9599`,
		Args:          noSubcommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), cmd.ErrOrStderr(), flags)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	flags.register(root)
	root.AddCommand(demoCommand(),
		statusCommand(), topCommand(), versionsCommand(), diffCommand(), pinCommand(), unpinCommand(), rollbackCommand(), approveCommand(), refreshCommand(),
		getCommand(), mgetCommand(), scanCommand(), catCommand(), inspectCommand(), verifyCommand(), buildCommand(),
		checkConfigCommand(), configCommand(), manCommand(), versionCommand(), loadWorkerCommand())
	root.InitDefaultCompletionCmd()
	checkUsage(root)
	return root
}

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
		return usageError{fmt.Errorf("%w%s", err, didYouMean(meant))}
	}
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// didYouMean is the end of all messages about a name that is not known and may be mistyped.
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + plain(name) + "?"
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
