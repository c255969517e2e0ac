package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"sequins/internal/human"
	"sequins/status"
)

// printNodes prints a table of the nodes and their disks, below that of the databases. Without other
// nodes and disk data it prints nothing.
func printNodes(out io.Writer, st *status.Status) error {
	if len(st.Peers) == 0 && st.Disk.Bytes == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	t := newTable(out, "NODE", "SHARD", "ZONE", "BLOCKS", "DISK FREE", "OF", "")
	addNode(t, status.Peer{ShardID: st.ShardID, Zone: st.Zone, Disk: st.Disk}, st.Node)
	for _, name := range slices.Sorted(maps.Keys(st.Peers)) {
		addNode(t, st.Peers[name], name)
	}
	return t.flush()
}

func addNode(t *table, p status.Peer, name string) {
	note := p.Error
	switch {
	case note != "":
		note = "did not answer: " + note
	case p.Disk.Low:
		note = "the disk is nearly full"
	}
	dash := func(s string) string { return dashIf(s == "", plain(s)) }
	t.row(plain(name), dash(p.ShardID), dash(p.Zone), size(p.Disk.Blocks), free(p.Disk), size(p.Disk.Bytes), plain(note))
}

// free returns the free space, or a dash if nothing is known about the disk.
func free(d status.Disk) string {
	if d.Bytes <= 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%d%%)", human.Size(d.Free), int(100*float64(d.Free)/float64(d.Bytes)))
}
