// Command sequins serves the output of batch jobs: it loads the newest version of each database from a
// directory of files to the local disk, answers GET /db/key from there, and switches to the next
// version when one appears.
//
// This package is the command line: flags, subcommands, signals and exit codes. main.go has the root
// command, serve.go runs a node from flags and sequins.conf by node/daemon, demo.go one for the demo, and
// files.go and datafile.go read files without a server.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

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
	var unwritten error // of a help text, for which cobra has no error
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, unwritten = fmt.Fprintf(stdout, "%s\n\n%s", strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)), cmd.UsageString())
	})
	cmd, err := root.ExecuteContextC(context.Background())
	if err = cmp.Or(err, unwritten); err != nil {
		for line := range strings.Lines(err.Error()) {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sequins: %s\n", term.Clean(strings.TrimSuffix(line, "\n")))
		}
	}
	return codeOf(err)
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

Exit codes of all commands; 130 or 143 after a second SIGINT or SIGTERM:
` + exitHelp(),
		Example: `  sequins demo
  sequins --source /srv/sequins --local-store /var/sequins
  sequins --config /etc/sequins.conf --bind 127.0.0.1:9599`,
		Args:          noSubcommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       fmt.Sprintf("sequins %s (%s %s/%s)", buildName(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), cmd.ErrOrStderr(), flags)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	flags.register(root)
	addCommands(root)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		cmd, unknown, err := root.Find(args)
		return cmp.Or(err, noSubcommand(cmd, unknown))
	}
	checkUsage(root)
	return root
}

// addCommands adds the commands, in groups for --help.
func addCommands(root *cobra.Command) {
	const other = "Other commands:"
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Commands that ask a running node:", []*cobra.Command{statusCommand(), topCommand(), planCommand(), getCommand(), scanCommand(), diffCommand()}},
		{"Commands that work on a source:", []*cobra.Command{versionsCommand(), pinCommand(), unpinCommand(), rollbackCommand(), approveCommand(), refreshCommand(), buildCommand()}},
		{"Commands that read files:", []*cobra.Command{catCommand(), verifyCommand()}},
		{other, []*cobra.Command{demoCommand(), checkConfigCommand(), configCommand(), manCommand(), loadWorkerCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(other)
	root.SetCompletionCommandGroupID(other)
}
