package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/cmd/sequins/top"
	"sequins/internal/human"
	"sequins/internal/term"
	"sequins/observe/status"
)

// printStatus writes the status for people. Data from the network is escaped.
func printStatus(c term.Console, st *status.Status, base string, now time.Time) error {
	health, _, findings := st.Overview()
	lines := []string{strings.Join(headOf(st, base, now), ", "), c.Paint(top.LevelColors[st.Level], term.Clean(health))}
	for _, f := range findings {
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
	if _, err := fmt.Fprintln(c.Out, strings.Join(lines, "\n")); err != nil {
		return err
	}
	if err := printDBs(c, st, now); err != nil {
		return err
	}
	return printNodes(c, st)
}

// headOf returns what the first line says of a node.
func headOf(st *status.Status, base string, now time.Time) []string {
	head := []string{term.Clean(base)}
	if st.Build != "" {
		head = append(head, "sequins "+term.Clean(st.Build))
	}
	if !st.StartedAt.IsZero() {
		head = append(head, "up for "+human.Duration(now.Sub(st.StartedAt)))
	}
	return head
}

func printDBs(c term.Console, st *status.Status, now time.Time) error {
	if len(st.DBs) == 0 {
		return nil
	}
	t := term.NewTable(c, "DATABASE", "VERSION", "STATE", "PARTITIONS", "RECORDS", "SIZE", "DATA FROM", "")
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		addRows(t, st.DBs[name], name, st.Node, now)
	}
	return t.Flush()
}

// addRows adds a row for each version of a db, the newest first.
func addRows(t *term.Table, d status.DB, name, node string, now time.Time) {
	if len(d.Versions) == 0 {
		t.Row(term.Clean(name), "-", "-", "-", "-", "-", "-", term.Clean(d.Error))
		return
	}
	label := term.Clean(name)
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(d.Versions))) {
		v := d.Versions[version]
		n := v.Nodes[node]
		star := ""
		if n.Current {
			star = " *"
		}
		t.Row(label, term.Clean(version)+star, term.Clean(string(n.State)), fmt.Sprintf("%d of %d", len(n.Partitions), v.NumPartitions),
			number(n.Records), size(n.Bytes), day(n.LastModified), term.Clean(note(v, version, n, now))).Color(2, top.StateColors[n.State])
		label = ""
	}
}

// note returns remarks about a version on a node.
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
	for _, text := range []string{n.Detail, v.Brief(n.Error, name)} {
		if text != "" {
			notes = append(notes, text)
		}
	}
	return strings.Join(notes, ", ")
}

// printNodes prints a table of the nodes and their disks, below that of the databases. Without other
// nodes and disk data it prints nothing.
func printNodes(c term.Console, st *status.Status) error {
	if len(st.Peers) == 0 && st.Disk.Bytes == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(c.Out); err != nil {
		return err
	}
	t := term.NewTable(c, "NODE", "SHARD", "ZONE", "BLOCKS", "DISK FREE", "OF", "")
	addNode(t, status.Peer{ShardID: st.ShardID, Zone: st.Zone, Disk: st.Disk}, st.Node)
	for _, name := range slices.Sorted(maps.Keys(st.Peers)) {
		addNode(t, st.Peers[name], name)
	}
	return t.Flush()
}

func addNode(t *term.Table, p status.Peer, name string) {
	note, color := p.Error, term.Plain
	switch {
	case note != "":
		note, color = "did not answer: "+note, term.Red
	case p.Disk.Low:
		note, color = "the disk is nearly full", term.Yellow
	}
	dash := func(s string) string { return dashIf(s == "", term.Clean(s)) }
	t.Row(term.Clean(name), dash(p.ShardID), dash(p.Zone), size(p.Disk.Blocks), free(p.Disk), size(p.Disk.Bytes), term.Clean(note)).Color(6, color)
}

// free returns the free space, or a dash if nothing is known about the disk.
func free(d status.Disk) string {
	if d.Bytes <= 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%d%%)", human.Size(d.Free), int(100*float64(d.Free)/float64(d.Bytes)))
}

// number formats 1234567 as 1,234,567, and 0 as a dash.
func number(n int64) string { return dashIf(n == 0, human.Count(n)) }

// size formats bytes in powers of 1024, and 0 as a dash.
func size(n int64) string { return dashIf(n == 0, human.Size(n)) }

// day formats a time to the minute, and a zero time as a dash.
func day(t time.Time) string { return dashIf(t.IsZero(), t.UTC().Format("2006-01-02 15:04")) }

func dashIf(empty bool, text string) string {
	if empty {
		return "-"
	}
	return text
}
