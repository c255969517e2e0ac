package statuspage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/status"
)

// A version of four partitions, of which one is nowhere, one on too few nodes, one on too many.
func fourPartitions() *status.Version {
	on := func(partitions ...int) status.OnNode {
		return status.OnNode{State: status.Active, Partitions: partitions}
	}
	return &status.Version{NumPartitions: 4, TargetReplication: 2, Nodes: map[string]status.OnNode{"a": on(3, 1, 0), "b": on(3, 1), "c": on(3)}}
}

func TestHolders(t *testing.T) {
	h := newHolders("1", fourPartitions(), true)
	var texts []string
	for _, l := range h.Legend {
		texts = append(texts, l.Text)
	}
	want := []string{"1 on no node: 2", "1 on too few nodes: 0", "1 on as many nodes as wanted", "1 on more nodes than wanted"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	if h.Title != "4 partitions, each wanted on 2 nodes" || !strings.HasSuffix(h.Grid.Label, strings.Join(want, "; ")) {
		t.Errorf("%q, %q", h.Title, h.Grid.Label)
	}
	wantGrid := []path{{"r0", "M2 0" + shapes[onNone]}, {"r1", "M0 0" + shapes[onFew]}, {"r2", "M1 0" + shapes[wanted]}, {"r3", "M3 0" + shapes[onMany]}}
	if diff := cmp.Diff(wantGrid, h.Grid.Paths); diff != "" {
		t.Error(diff)
	}
	a := h.Nodes[0]
	if a.Ranges != "0-1, 3" || a.Held != "3 of 4" || a.Strip.Label != "3 of 4 partitions" {
		t.Errorf("%+v", a)
	}
	if diff := cmp.Diff([]path{{"s4", "M0 0h2v1h-2zM3 0h1v1h-1z"}}, a.Strip.Paths); diff != "" {
		t.Error(diff)
	}
}

// With more partitions than there are cells, a cell stands for several: for the worst of them in the picture of all, and
// for the share of them in that of a node.
func TestCells(t *testing.T) {
	const partitions = 1 << 16
	v := &status.Version{NumPartitions: partitions, TargetReplication: 1}
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
	h := newHolders("1", v, true)
	if h.Scale != "each cell: 32 partitions, drawn as the worst of them" || h.Grid.Width != 64 || h.Grid.Height != 32 {
		t.Errorf("%q, %d by %d", h.Scale, h.Grid.Width, h.Grid.Height)
	}
	if h.Grid.Paths[0].Class != "r2" && h.Grid.Paths[0].Class != "r1" {
		t.Errorf("%v", h.Grid.Paths[0])
	}
	if got := h.Nodes[0].Strip.Paths[0]; got != (path{"s3", "M1 0h1v1h-1z"}) { // a cell without partition 40
		t.Errorf("%v", got)
	}
	size := 0
	for _, n := range h.Nodes {
		for _, p := range n.Strip.Paths {
			size += len(p.D)
		}
		size += len(n.Ranges)
	}
	if size > 16<<10 {
		t.Errorf("%d bytes for two nodes", size)
	}
}

// A share of partitions that is small is still seen.
func TestSummaryStrip(t *testing.T) {
	v := &status.Version{NumPartitions: 1000, TargetReplication: 1, Replicas: make([]int, 1000)}
	for p := range v.Replicas {
		v.Replicas[p] = 1
	}
	v.Replicas[77] = 0
	s := summaryStrip(v)
	if diff := cmp.Diff([]path{{"r0", "M0 0h3v10h-3z"}, {"r2", "M3 0h97v10h-97z"}}, s.Paths); diff != "" || s.Label != "1 on no node: 77; 999 on as many nodes as wanted" {
		t.Errorf("%s %s", diff, s.Label)
	}
}
