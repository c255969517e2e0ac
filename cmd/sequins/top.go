package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/cmd/sequins/top"
	"sequins/internal/term"
	"sequins/observe/status"
)

func topCommand() *cobra.Command {
	var node nodeFlags
	cmd := &cobra.Command{
		Use:   "top [ADDR]",
		Short: "Watch the traffic, the loads, the nodes and the events of a running sequins",
		Long: `Show the status of a running sequins on the whole terminal, and keep it up to date:
for each database the requests per second, the part of them that found no key, the
times within which a half and 99 % were answered, and what is special; loads with
their progress and what they wait for; the nodes; and the last events. Of a cluster,
traffic is that of all nodes, and the times are those of the slowest.

ADDR is host:port or a URL, as in status. While the node does not answer, the last
status stays, with its age.

Keys: j, k and the arrows select a database, s sorts by the next column, r reverses,
/ shows only databases whose names contain a text, q quits. For a pipe or a log, use
sequins status.`,
		Example: `  sequins top
  sequins top node1.example.com:9599`,
		Args: node.args(0, 0),
		ValidArgsFunction: node.completeAfterNode(func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, noCompletion
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.ask(cmd, args, func(c *client.Node, _ []string) (err error) {
				tty, err := terminal(cmd)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, tty.Close()) }()
				return top.Run(cmd.Context(), top.Options{Terminal: tty, Console: term.NewConsole(cmd.OutOrStdout()), Name: c.URL(), Ask: func(ctx context.Context) (status.Status, error) {
					st, _, err := c.Status(ctx)
					return st, err
				}})
			})
		},
	}
	node.register(cmd)
	return cmd
}

// terminal opens the terminal of the process, which must be its output.
func terminal(cmd *cobra.Command) (*os.File, error) {
	if term.Is(cmd.OutOrStdout()) && os.Getenv("TERM") != "dumb" {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			return tty, nil
		}
	}
	return nil, errors.New("top needs a terminal: use sequins status")
}
