package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/term"
	"sequins/observe/status"
)

func statusCommand() *cobra.Command {
	var asJSON bool
	var node nodeFlags
	cmd := &cobra.Command{
		Use:   "status [ADDR] [DB...]",
		Short: "Show the health, databases and versions of a running sequins",
		Long: `Show the status of a running sequins: one line of health, a table with a line for
each version of each database, and a table of the nodes and their disks. A star
marks the versions that are served. With DB, only these databases are shown.

` + nodeHelp + `

Exits with 0 if the node is healthy: every database is served, from a version
whose partitions are held by enough nodes, no version failed to load or is held
by the gate, and the source can be read. Exits with 4 if it is not healthy, 5 if
it cannot be reached, and 3 if it has no database DB. sequins top keeps the status
up to date.

If requests need a token ([auth] tokens_file), it must allow status pages. It is
read from the file --token-file or from SEQUINS_TOKEN.`,
		Example: `  sequins status
  sequins status node1.example.com:9599
  sequins status --json https://node1:9599 --ca ca.pem | jq -r .health`,
		Args:              node.args(0, -1),
		ValidArgsFunction: node.completeAfterNode(node.completeDBs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.ask(cmd, args, func(c *client.Node, dbs []string) error { return showStatus(cmd, c, dbs, asJSON) })
		},
	}
	node.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON, as GET / answers it")
	return cmd
}

// errUnhealthy has no text, because the reason was printed.
var errUnhealthy = inResult{withCode(exitUnhealthy, errors.New(""))}

// showStatus prints the status of a node, of all dbs or of some.
func showStatus(cmd *cobra.Command, c *client.Node, dbs []string, asJSON bool) error {
	p := term.NewCount(cmd.ErrOrStderr(), "asking "+c.URL(), "answer", 0)
	st, raw, err := c.Status(cmd.Context())
	p.Stop()
	if err != nil {
		return err
	}
	for _, db := range dbs {
		if _, found := st.DBs[db]; !found {
			return noDB(c.URL(), db, slices.Sorted(maps.Keys(st.DBs)))
		}
	}
	if len(dbs) > 0 {
		maps.DeleteFunc(st.DBs, func(name string, _ status.DB) bool { return !slices.Contains(dbs, name) })
	}
	if asJSON {
		err = printStatusJSON(cmd.OutOrStdout(), raw, dbs)
	} else {
		err = printStatus(term.NewConsole(cmd.OutOrStdout()), &st, c.URL(), time.Now())
	}
	if err == nil && !st.Healthy {
		err = errUnhealthy
	}
	return err
}

// printStatusJSON prints the JSON of the node on a line, also the fields that this release does not know, of all dbs or of some.
func printStatusJSON(out io.Writer, raw []byte, chosen []string) error {
	var all, dbs map[string]json.RawMessage
	err := json.Unmarshal(raw, &all)
	if err == nil && len(chosen) > 0 {
		err = json.Unmarshal(all["dbs"], &dbs)
		maps.DeleteFunc(dbs, func(name string, _ json.RawMessage) bool { return !slices.Contains(chosen, name) })
		if err == nil {
			all["dbs"], err = json.Marshal(dbs)
		}
	}
	if err != nil {
		return err
	}
	return printJSON(out, all)
}
