package main

import (
	"context"
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

ADDR is host:port or a URL, also as --server or in the variable SEQUINS_SERVER. The
default is the node of this machine: bind of sequins.conf or /etc/sequins.conf, and
127.0.0.1:9599 without such a file.

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
			dbs := node.take(args)
			c, err := node.client()
			if err != nil {
				return err
			}
			defer c.Close()
			v := statusView{client: c, dbs: dbs, json: asJSON, console: term.NewConsole(cmd.OutOrStdout()), report: cmd.ErrOrStderr()}
			return node.explain(dbs, v.show(cmd.Context()))
		},
	}
	node.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON, as GET / answers it")
	return cmd
}

// errUnhealthy has no text, because the reason was printed.
var errUnhealthy = inResult{withCode(exitUnhealthy, errors.New(""))}

// statusView shows the status of a node.
type statusView struct {
	client  *client.Node
	dbs     []string // to show; all if empty
	json    bool
	console term.Console
	report  io.Writer
}

// show prints the status.
func (v *statusView) show(ctx context.Context) error {
	p := term.NewCount(v.report, "asking "+v.client.URL(), "answer", 0)
	st, raw, err := v.client.Status(ctx)
	p.Stop()
	if err != nil {
		return ofNode(ctx, v.client, "", err)
	}
	if err := v.choose(&st); err != nil {
		return err
	}
	if v.json {
		err = v.printJSON(raw, &st)
	} else {
		err = printStatus(v.console, &st, v.client.URL(), time.Now())
	}
	if err == nil && !st.Healthy {
		err = errUnhealthy
	}
	return err
}

// choose removes the databases that were not asked for. It is an error if one of those that were does not exist.
func (v *statusView) choose(st *status.Status) error {
	if len(v.dbs) == 0 {
		return nil
	}
	for _, db := range v.dbs {
		if _, found := st.DBs[db]; !found {
			return noDB(v.client.URL(), db, slices.Sorted(maps.Keys(st.DBs)))
		}
	}
	maps.DeleteFunc(st.DBs, func(name string, _ status.DB) bool { return !slices.Contains(v.dbs, name) })
	return nil
}

// printJSON prints the JSON of the node on a line, with the chosen databases.
func (v *statusView) printJSON(raw []byte, st *status.Status) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	if len(v.dbs) > 0 {
		var dbs map[string]json.RawMessage // with fields that this release does not know
		if err := json.Unmarshal(all["dbs"], &dbs); err != nil {
			return err
		}
		maps.DeleteFunc(dbs, func(name string, _ json.RawMessage) bool { _, shown := st.DBs[name]; return !shown })
		text, err := json.Marshal(dbs)
		if err != nil {
			return err
		}
		all["dbs"] = text
	}
	return printJSON(v.console.Out, all)
}
