// Package report has what a node tells the others of a content that it holds: the figures of its blocks, by partition, and what it finds of it.
//
// A node encodes a Report and publishes it in ZooKeeper; package cluster parses the reports of others when they arrive. Copies of blocks, counts and
// verdicts (package gate) follow them.
package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sequins/internal/content"
	"sequins/store"
)

// Report is what a node tells the others of a content.
type Report struct {
	// Rules is the fingerprint of the rules of the node; "" if it has none.
	Rules string `json:"rules,omitempty"`
	// Finding is what the node finds by itself, or, of a content that it serves or has served, how it was passed.
	Finding store.Finding `json:"finding"`
	// Served is the content that the node serves, zero if there is none.
	Served content.Content `json:"served,omitzero"`
	// Loading reports that the node loads or copies what it has to hold of the content and does not yet.
	Loading bool `json:"loading,omitempty"`
	// Measured reports that the node has looked into all blocks that it holds, by its rules. Before, its figures do not count: it may still find that
	// they break a rule.
	Measured bool   `json:"measured,omitempty"`
	Sample   Sample `json:"sample,omitzero"` // of keys of Served
	// Rejected are the verdicts of contents of the database that the node has held. It need not have anything of them any more.
	Rejected []store.Verdict `json:"rejected,omitempty"`
	// Blocks are the figures of the partitions that the node holds.
	Blocks map[int]Figures `json:"-"`
}

// Figures are those of one block, or of all blocks of a content.
type Figures struct {
	Records int64
	Bytes   int64 // of keys and values
	Largest int64 // the size of the largest value on this node, in bytes; 0 in reports: each node judges its own blocks
}

// Sample is the result of looking keys of the content that is served up in another one.
type Sample struct {
	Keys    int64 `json:"keys"`
	Missing int64 `json:"missing"` // those that the other one lacks
}

const (
	// MaxSize limits an encoded report, in bytes: a znode has no more. There is room for at least 4,000 partitions on one node.
	MaxSize = 64 << 10
	// maxPartitions limits the number of a partition.
	maxPartitions = 1 << 31
	// maxFigure limits each figure, so that sums cannot overflow.
	maxFigure = 1 << 42
)

var errTooLarge = errors.New("the figures of so many partitions do not fit into one znode; without them, no node can judge the version")

// Encode returns the report as a line of JSON, followed by three unsigned varints (see encoding/binary) for each partition: its number, less that of
// the one before and 1, its records, and its bytes.
func (r Report) Encode() ([]byte, error) {
	r.Finding.Reason = store.Short(r.Finding.Reason)
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	next := 0
	for _, p := range slices.Sorted(maps.Keys(r.Blocks)) {
		for _, n := range []int64{int64(p - next), r.Blocks[p].Records, r.Blocks[p].Bytes} {
			data = binary.AppendUvarint(data, uint64(n))
		}
		next = p + 1
	}
	if len(data) > MaxSize {
		if r.Rejected != nil { // they only save time
			r.Rejected = nil
			return r.Encode()
		}
		return nil, errTooLarge
	}
	return data, nil
}

// Parse parses an encoded report of another node.
func Parse(data []byte) (Report, error) {
	var r Report
	if len(data) > MaxSize {
		return r, fmt.Errorf("%d bytes, more than the limit of %d", len(data), MaxSize)
	}
	head, figures, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(head, &r); err != nil {
		return r, err
	}
	if err := checkFinding(&r.Finding, store.Pending, store.Passed, store.Held); err != nil {
		return r, err
	}
	for i := range r.Rejected {
		if err := checkFinding(&r.Rejected[i].Finding, store.Held); err != nil {
			return r, err
		}
	}
	switch {
	case !isContentOrNone(r.Served):
		return r, errors.New("a content that is none")
	case r.Sample.Keys < 0 || r.Sample.Keys > maxFigure || r.Sample.Missing < 0 || r.Sample.Missing > r.Sample.Keys:
		return r, errors.New("an impossible sample")
	}
	var err error
	r.Blocks, err = parseBlocks(figures)
	return r, err
}

// checkFinding checks a finding of another node, and shortens its reason.
func checkFinding(f *store.Finding, states ...string) error {
	f.Reason = store.Short(f.Reason)
	switch {
	case !slices.Contains(states, f.State):
		return fmt.Errorf("unknown state %q", f.State)
	case f.Vetoed && f.State != store.Held:
		return fmt.Errorf("a veto with state %q", f.State)
	case !isContentOrNone(f.Against):
		return errors.New("a content that is none")
	}
	return nil
}

func isContentOrNone(c content.Content) bool { return c == content.Content{} || c.Valid() }

func parseBlocks(rest []byte) (map[int]Figures, error) {
	all, next := make(map[int]Figures, len(rest)/8), uint64(0)
	for len(rest) > 0 {
		var three [3]uint64
		for i := range three {
			n, size := binary.Uvarint(rest)
			if size <= 0 || n > maxFigure {
				return nil, errors.New("figures that cannot be read")
			}
			three[i], rest = n, rest[size:]
		}
		p := next + three[0]
		if p >= maxPartitions {
			return nil, fmt.Errorf("figures of partition %d", p)
		}
		all[int(p)] = Figures{Records: int64(three[1]), Bytes: int64(three[2])}
		next = p + 1
	}
	return all, nil
}

// Sum returns the totals of a content, as far as they are known, and the partitions whose figures no node has reported. own are the figures of the blocks
// on this node, which come before those of others.
func Sum(partitions int, own map[int]Figures, reports map[string]Report) (t Figures, unknown []int) {
	known, here := make([]Figures, partitions), make([]bool, partitions)
	note := func(blocks map[int]Figures) {
		for p, f := range blocks {
			if p < partitions {
				known[p], here[p] = f, true
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(reports)) {
		note(reports[node].Blocks)
	}
	note(own)
	for p, f := range known {
		if !here[p] {
			unknown = append(unknown, p)
			continue
		}
		t.Records += f.Records
		t.Bytes += f.Bytes
		t.Largest = max(t.Largest, f.Largest)
	}
	return t, unknown
}
