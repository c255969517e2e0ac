package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/human"
	"sequins/internal/term"
	"sequins/observe/status"
)

func statusCommand() *cobra.Command {
	var asJSON bool
	var node nodeFlags
	cmd := &cobra.Command{
		Use:   "status [DB...]",
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
  sequins status --server node1.example.com:9599
  sequins status --json --server https://node1:9599 --ca ca.pem | jq -r .health`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.ask(cmd, args, func(c *client.Node) error { return showStatus(cmd, c, args, asJSON) })
		},
	}
	node.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON, as GET / answers it")
	return cmd
}

// errUnhealthy has no text, because the reason was printed.
var errUnhealthy = withCode(exitUnhealthy, errors.New(""))

// showStatus prints the status of a node, of all dbs or of some.
func showStatus(cmd *cobra.Command, c *client.Node, dbs []string, asJSON bool) error {
	p := term.NewProgress(cmd.ErrOrStderr(), "asking "+c.URL(), nil)
	st, err := c.Status(cmd.Context())
	p.Stop()
	if err != nil {
		return err
	}
	if err := chooseDBs(&st, c.URL(), dbs); err != nil {
		return err
	}
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), &st)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), statusText(&st, c.URL(), time.Now()))
	}
	if err == nil && !st.Healthy {
		err = errUnhealthy
	}
	return err
}

// chooseDBs removes all but the chosen databases from a status, or none if there are no chosen ones.
func chooseDBs(st *status.Status, url string, chosen []string) error {
	for _, db := range chosen {
		if _, found := st.DBs[db]; !found {
			return noDB(url, db, slices.Sorted(maps.Keys(st.DBs)))
		}
	}
	if len(chosen) > 0 {
		maps.DeleteFunc(st.DBs, func(name string, _ status.DB) bool { return !slices.Contains(chosen, name) })
	}
	return nil
}

// statusText returns the status for people. Data from the network is escaped.
func statusText(st *status.Status, base string, now time.Time) string {
	return headOf(st, base, now) + dbTable(st, now) + nodeTable(st)
}

// headOf returns the lines about the node that has answered, its release, since when it is up, its health, and what is special.
func headOf(st *status.Status, base string, now time.Time) string {
	head := term.Clean(base)
	if st.Build != "" {
		head += ", sequins " + term.Clean(st.Build)
	}
	if !st.StartedAt.IsZero() {
		head += ", up for " + human.Duration(now.Sub(st.StartedAt))
	}
	lines := []string{head, term.Clean(st.Health)}
	for _, f := range st.Details() {
		lines = append(lines, term.Clean(f.Line(now)))
	}
	for _, w := range st.Waiting {
		if w.DB == "" { // what it waits for of a database is in the row of that
			lines = append(lines, term.Clean("Waiting for "+w.Line(now)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		if p := st.DBs[name].Pin; p != nil {
			lines = append(lines, term.Clean("The pin of "+name+": "+p.String()))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func dbTable(st *status.Status, now time.Time) string {
	if len(st.DBs) == 0 {
		return ""
	}
	t := term.NewTable("DATABASE", "VERSION", "STATE", "PARTITIONS", "RECORDS", "SIZE", "DATA FROM", "")
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		d, label := st.DBs[name], term.Clean(name)
		if len(d.Versions) == 0 {
			t.Row(label, "-", "-", "-", "-", "-", "-", term.Clean(d.Error))
		}
		for _, version := range slices.Backward(slices.Sorted(maps.Keys(d.Versions))) { // the newest first
			v := d.Versions[version]
			n := v.Nodes[st.Node]
			star := ""
			if n.Current {
				star = " *"
			}
			t.Row(label, term.Clean(version)+star, term.Clean(string(n.State)), fmt.Sprintf("%d of %d", len(n.Partitions), v.NumPartitions),
				number(n.Records), size(n.Bytes), day(n.LastModified), term.Clean(note(v, version, n, now)))
			label = ""
		}
	}
	return t.String()
}

func note(v status.Version, name string, n status.OnNode, now time.Time) string {
	var notes []string
	if p := n.Progress; p != nil && p.Bytes > 0 {
		notes = append(notes, fmt.Sprintf("%d%%", 100*p.BytesDone/p.Bytes))
		if left := p.ETA.Sub(now); left > 0 {
			notes = append(notes, "about "+human.Duration(left)+" left")
		}
	}
	if n.Current && !n.ActiveAt.IsZero() {
		notes = append(notes, "active for "+human.Duration(now.Sub(n.ActiveAt)))
	}
	if n.Unchanged > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d partitions unchanged", n.Unchanged, v.NumPartitions))
	}
	if n.Current && v.MissingPartitions > 0 {
		notes = append(notes, fmt.Sprintf("partitions on no node: %d", v.MissingPartitions))
	}
	if n.Current && v.UnderreplicatedPartitions > 0 {
		notes = append(notes, fmt.Sprintf("partitions on too few nodes: %d", v.UnderreplicatedPartitions))
	}
	if text := strings.Trim(v.Brief(n.Error, name)+"; "+n.Detail, "; "); text != "" {
		notes = append(notes, text)
	}
	return strings.Join(notes, ", ")
}

// nodeTable returns a table of the nodes and their disks, for below that of the databases; "" without other
// nodes and disk data.
func nodeTable(st *status.Status) string {
	if len(st.Peers) == 0 && st.Disk.Bytes == 0 {
		return ""
	}
	t := term.NewTable("NODE", "SHARD", "ZONE", "BLOCKS", "DISK FREE", "OF", "")
	dash := func(s string) string { return dashIf(s == "", term.Clean(s)) }
	for _, p := range st.Members() {
		special := ""
		if p.Error != "" {
			special = "did not answer: " + term.Clean(p.Error)
		} else if p.Disk.Low {
			special = "the disk is nearly full"
		}
		t.Row(term.Clean(p.Addr), dash(p.ShardID), dash(p.Zone), size(p.Disk.Blocks), free(p.Disk), size(p.Disk.Bytes), special)
	}
	return "\n" + t.String()
}

// free returns the free space, or a dash if nothing is known about the disk.
func free(d status.Disk) string {
	if d.Bytes <= 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%d%%)", human.Size(d.Free), int(100*float64(d.Free)/float64(d.Bytes)))
}

func number(n int64) string { return dashIf(n == 0, human.Count(n)) }

// size formats bytes in powers of 1024, and 0 as a dash.
func size(n int64) string { return dashIf(n == 0, human.Size(n)) }

func day(t time.Time) string { return dashIf(t.IsZero(), t.UTC().Format("2006-01-02 15:04")) }

func dashIf(empty bool, text string) string {
	if empty {
		return "-"
	}
	return text
}
