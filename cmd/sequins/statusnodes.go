package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"sequins/internal/human"
)

// peerStatus is the part of a node's status that is shown; see server.Peer.
type peerStatus struct {
	ShardID string     `json:"shard_id"`
	Zone    string     `json:"zone"`
	Error   string     `json:"error"`
	Disk    diskStatus `json:"disk"`
}

// diskStatus is the disk of a node's blocks, in bytes; see server.Disk.
type diskStatus struct {
	Bytes  int64 `json:"bytes"`
	Free   int64 `json:"bytes_free"`
	Blocks int64 `json:"bytes_blocks"`
	Low    bool  `json:"low"`
}

// printNodes prints a table of the nodes and their disks, below that of the databases. Without other
// nodes and disk data it prints nothing.
func (st *nodeStatus) printNodes(out io.Writer) error {
	if len(st.Peers) == 0 && st.Disk.Bytes == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	t := newTable(out, "NODE", "SHARD", "ZONE", "BLOCKS", "DISK FREE", "OF", "")
	peerStatus{ShardID: st.ShardID, Zone: st.Zone, Disk: st.Disk}.row(t, st.Node)
	for _, name := range slices.Sorted(maps.Keys(st.Peers)) {
		st.Peers[name].row(t, name)
	}
	return t.flush()
}

func (p peerStatus) row(t *table, name string) {
	note := p.Error
	switch {
	case note != "":
		note = "did not answer: " + note
	case p.Disk.Low:
		note = "the disk is nearly full"
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return plain(s)
	}
	t.row(plain(name), dash(p.ShardID), dash(p.Zone), size(p.Disk.Blocks), p.Disk.free(), size(p.Disk.Bytes), plain(note))
}

// free returns the free space, or a dash if nothing is known about the disk.
func (d diskStatus) free() string {
	if d.Bytes <= 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%d%%)", human.Size(d.Free), int(100*float64(d.Free)/float64(d.Bytes)))
}
