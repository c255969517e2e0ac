package cluster

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/zk"
)

// holding is one partition on one node.
type holding struct {
	partition int
	addr      string
}

// advertisement is what another node publishes of a partition.
type advertisement struct {
	holding
	contents   []content.Content // none of an upstream node, which serves any, and if unreadable
	unreadable bool
	vanished   time.Time // since when it is not published any more; zero: it is
}

// parseAdvertisements returns what nodes other than self advertise of a version, and the last error.
func parseAdvertisements(entries []zk.Entry, version, self string) (all []advertisement, malformed error) {
	var last []byte // most znodes of a version have the same data
	var contents []content.Content
	var invalid error
	for _, e := range entries {
		p, addr, err := zk.ParsePartition(e.Name)
		if err != nil {
			malformed = err
			continue
		}
		if addr == self {
			continue
		}
		if !bytes.Equal(e.Data, last) {
			contents, invalid = zk.ParseContents(version, e.Data)
			last = e.Data
		}
		if invalid != nil {
			malformed = fmt.Errorf("znode %q: %w", e.Name, invalid)
		}
		all = append(all, advertisement{holding: holding{p, addr}, contents: contents, unreadable: invalid != nil || e.Unreadable})
	}
	return all, malformed
}

// serves reports whether a is of a content, or if c has no division, of any content of its input.
func (a advertisement) serves(c content.Content) bool {
	if len(a.contents) == 0 {
		return !a.unreadable
	}
	return slices.ContainsFunc(a.contents, func(theirs content.Content) bool {
		return theirs == c || c.Division == "" && theirs.Input == c.Input
	})
}

// view lists the nodes that hold partitions of a content, by partition. It is immutable.
type view []holders

// holders are the nodes that may be asked for a partition.
type holders struct {
	peers    []string // those that advertise it, and then those that have vanished
	replicas int      // how many of them advertise it
}

const (
	// missedFor is how long a node remains a peer for a partition that it no longer advertises: one that has lost ZooKeeper may
	// still answer.
	missedFor = 10 * time.Minute
	// withdrawnFor is the same for a node that is a member: if it had lost ZooKeeper, it would have advertised the partition again.
	withdrawnFor = time.Minute
	// maxMissed limits the vanished peers of one partition.
	maxMissed = 8
)

// withVanished returns advertisements, followed by those of before that have vanished since, or a while ago. A node that advertises
// another content of the partition now has not vanished.
func withVanished(all, before []advertisement, now time.Time) []advertisement {
	there := make(map[holding]bool, len(all))
	for _, a := range all {
		there[a.holding] = true
	}
	for _, a := range before {
		if a.vanished.IsZero() {
			a.vanished = now
		}
		if !there[a.holding] && now.Sub(a.vanished) < missedFor {
			all = append(all, a)
		}
	}
	return all
}

// newView returns the view of a content by the result of withVanished, or, if ZooKeeper has not listed the version, by what was remembered: these are no
// replicas that count.
func newView(all []advertisement, c content.Content, listed bool) *view {
	var v view
	for _, a := range all {
		if !a.serves(c) {
			continue
		}
		if missing := a.partition + 1 - len(v); missing > 0 {
			v = append(v, make(view, missing)...)
		}
		h := &v[a.partition]
		if listed && a.vanished.IsZero() {
			h.replicas++
		} else if len(h.peers) >= h.replicas+maxMissed {
			continue
		}
		h.peers = append(h.peers, a.addr)
	}
	return &v
}

// of returns the holders of a partition.
func (v view) of(partition int) (h holders) {
	if uint(partition) < uint(len(v)) {
		h = v[partition]
	}
	return h
}

// advertising returns those that advertise the partition.
func (h holders) advertising() []string { return h.peers[:h.replicas] }
