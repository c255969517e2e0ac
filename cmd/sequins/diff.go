package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/human"
	"sequins/internal/term"
	"sequins/reads/diff"
)

type diffFlags struct {
	node       nodeFlags
	list, json bool
}

func diffCommand() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use: "diff DB OLD NEW", Args: cobra.ExactArgs(3),
		Short: "Compare two versions of a database that nodes have",
		Long: `Compare two versions of a database: how many keys the new one has added, removed
and changed, and in which partitions. Both must be on the nodes: the one that is
served, one that is held or prepared, or one that keep_versions keeps. Blocks with
the same content are not read. --list prints the keys as they are found.

The node that is asked merges both versions in the order of the keys. It reads
the partitions that it has itself, and the others from the nodes that have them:
ask one that has much of both.

` + nodeHelp + `

Exits with 1 if something could not be compared, 3 if the database or a version is
not on the node, and 5 if it does not answer.`,
		Example: `  sequins diff words 2026-01-31 2026-02-01
  sequins diff words 2026-01-31 2026-02-01 --list --server node1:9599`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.node.ask(cmd, args, func(c *client.Node) error { return f.run(cmd, c, args) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.list, "list", false, "print every key that differs, a JSON object in a line, and the result last")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	f.node.register(cmd)
	return cmd
}

func (f *diffFlags) run(cmd *cobra.Command, c *client.Node, args []string) error {
	body, err := c.Diff(cmd.Context(), args[0], args[1], args[2], f.list)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	w := bufio.NewWriter(cmd.OutOrStdout())
	var at atomic.Pointer[diff.Progress]
	at.Store(new(diff.Progress))
	shown := term.NewProgress(cmd.ErrOrStderr(), "comparing", func() string { return fmt.Sprintf("%d of %s", at.Load().Done, human.Plural(at.Load().Of, "partition")) })
	report, err := diff.Read(body, func(d diff.Difference) error { return printJSON(w, d) }, func(p diff.Progress) { at.Store(&p) })
	shown.Stop()
	switch {
	case err != nil:
	case f.list || f.json:
		err = printJSON(w, report)
	default:
		err = printDiff(w, report)
	}
	if failed := w.Flush(); failed != nil { // not the node's fault
		return failed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.URL(), err)
	}
	if len(report.Unknown) == 0 {
		return nil
	}
	which := "all"
	if report.Unknown[0] >= 0 {
		which = human.Ranges(report.Unknown)
	}
	return fmt.Errorf("%s were not compared: no node that answers has them: %s", human.Plural(len(report.Unknown), "partition"), which)
}

func printDiff(out io.Writer, r *diff.Report) error {
	t := term.NewTable("PARTITION", "RECORDS BEFORE", "RECORDS", "ADDED", "REMOVED", "CHANGED", "BYTES ADDED", "BYTES REMOVED")
	row := func(name string, c *diff.Counts) {
		t.Row(name, human.Count(c.OldRecords), human.Count(c.NewRecords), human.Count(c.Added), human.Count(c.Removed), human.Count(c.Changed),
			human.Count(c.AddedBytes), human.Count(c.RemovedBytes))
	}
	for i := range r.Partitions {
		if p := &r.Partitions[i]; p.Partition >= 0 {
			row(strconv.Itoa(p.Partition), &p.Counts)
		}
	}
	row("all", &r.Counts)
	_, err := fmt.Fprint(out, t)
	return err
}
