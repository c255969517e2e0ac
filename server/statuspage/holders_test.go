package statuspage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/status"
)

// A version of four partitions, of which one is nowhere, one on too few nodes, one on too many.
func fourPartitions() status.Version {
	on := func(partitions ...int) status.OnNode {
		return status.OnNode{State: status.Active, Partitions: partitions}
	}
	return status.Version{NumPartitions: 4, TargetReplication: 2, Nodes: map[string]status.OnNode{"a": on(3, 1, 0), "b": on(3, 1), "c": on(3)}}
}

func TestHolders(t *testing.T) {
	h := newHolders(newVersionView("1", fourPartitions(), "a"), true)
	want := []note{
		{Level: status.LevelBad, Text: "1 partition on no node: 2"}, {Level: status.LevelWarn, Text: "1 partition on 1 node: 0"},
		{Level: status.LevelGood, Text: "1 partition on 2 nodes"}, {Level: status.LevelGood, Text: "1 partition on 3 nodes"},
	}
	if diff := cmp.Diff(want, h.Classes); diff != "" {
		t.Error(diff)
	}
	if h.Title != "4 partitions, each wanted on 2 nodes" {
		t.Errorf("%+v", h)
	}
	if diff := cmp.Diff(holder{Name: "a", Held: "3 of 4", Ranges: "0-1, 3"}, h.Nodes[0]); diff != "" {
		t.Error(diff)
	}
}

// The text of what nodes hold is bounded.
func TestManyPartitions(t *testing.T) {
	const partitions = 1 << 16
	v := status.Version{NumPartitions: partitions, TargetReplication: 1}
	some, all := status.OnNode{State: status.Active}, status.OnNode{State: status.Active}
	for p := range partitions {
		if p != 40 {
			all.Partitions = append(all.Partitions, p)
		}
		if p%4 == 0 {
			some.Partitions = append(some.Partitions, p)
		}
	}
	v.Nodes = map[string]status.OnNode{"all": all, "some": some}
	h := newHolders(newVersionView("1", v, "all"), true)
	size := 0
	for _, c := range h.Classes {
		size += len(c.Text)
	}
	for _, n := range h.Nodes {
		size += len(n.Ranges)
	}
	if size > 8<<10 {
		t.Errorf("%d bytes for two nodes", size)
	}
}
