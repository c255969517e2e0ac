package statuspage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sequins/internal/human"
	"sequins/observe/status"
)

const (
	columns    = 64 // of the picture of partitions
	maxCells   = 32 * columns
	maxRanges  = 300
	maxHolders = 100 // nodes whose partitions are shown
)

// holdersView is who holds the partitions of a version.
type holdersView struct {
	Version, Title string
	Open           bool
	Classes        []class // those that have partitions
	Width, Height  int     // of the picture, in cells; 0 if there are too many partitions for one
	Nodes          []holder
	MoreNodes      string
}

// class is the partitions that as many nodes hold in comparison with as many as wanted.
type class struct {
	Name, Text string
	Shape      string // what is drawn in a cell, from its upper left corner on; classes differ in shape as well as in colour
	Cells      string // the path of all cells
}

// classes are those of partitions on no node, on too few nodes, on as many as wanted, and on more. Their shapes are a cross, the lower
// half of a cell, all of it, and all of it with a hole.
var classes = [...]class{
	{Name: "r0", Text: "on no node", Shape: "m.05 .2l.15-.15.3.3.3-.3.15.15-.3.3.3.3-.15.15-.3-.3-.3.3-.15-.15.3-.3z"},
	{Name: "r1", Text: "on too few nodes", Shape: "m.05 .5h.9v.45h-.9z"},
	{Name: "r2", Text: "on as many nodes as wanted", Shape: "m.05 .05h.9v.9h-.9z"},
	{Name: "r3", Text: "on more nodes than wanted", Shape: "m.05 .05h.9v.9h-.9zm.3.3v.3h.3v-.3z"},
}

// classOf returns the index of the class of a partition that n nodes hold.
func classOf(n, target int) int {
	switch {
	case n == 0:
		return 0
	case n < target:
		return 1
	case n == target:
		return 2
	}
	return 3
}

// Label describes the picture for those who do not see it.
func (h *holdersView) Label() string {
	var texts []string
	for _, c := range h.Classes {
		texts = append(texts, c.Text)
	}
	return "Partitions by the number of nodes that hold them. " + strings.Join(texts, "; ")
}

// holder is what one node holds.
type holder struct{ Name, State, Held, Ranges string }

func newHolders(v *versionView, open bool) holdersView {
	counts := v.Holders()
	h := holdersView{Version: v.Name, Open: open, Classes: classesOf(counts, v.TargetReplication)}
	if len(counts) <= maxCells {
		h.Width, h.Height = min(len(counts), columns), (len(counts)+columns-1)/columns
	}
	h.Title = fmt.Sprintf("%s, each wanted on %s", human.Plural(len(counts), "partition"), human.Plural(max(1, v.TargetReplication), "node"))
	names := slices.Sorted(maps.Keys(v.Nodes))
	if i := slices.IndexFunc(names, func(name string) bool { return v.Nodes[name].Partitioner != "" }); i >= 0 { // those of one plan have the same
		h.Title += ", divided by " + v.Nodes[names[i]].Partitioner
	}
	if len(names) < 2 {
		return h
	}
	if n := len(names) - maxHolders; n > 0 {
		names, h.MoreNodes = names[:maxHolders], human.Plural(n, "more node")+" not shown; the JSON has all"
	}
	for _, node := range names {
		h.Nodes = append(h.Nodes, newHolder(node, v.Nodes[node], len(counts)))
	}
	return h
}

func newHolder(name string, n status.OnNode, partitions int) holder {
	list := slices.Sorted(slices.Values(n.Partitions))
	h := holder{Name: name, Held: held(len(list), partitions), Ranges: human.RangesUpTo(list, maxRanges)}
	if len(list) == 0 {
		h.Ranges = "none"
	}
	if n.State != status.Active {
		h.State = string(n.State)
	}
	return h
}

// classesOf divides the partitions into classes, and names those that lack a replica.
func classesOf(counts []int, target int) (all []class) {
	var partitions [len(classes)][]int
	for p, n := range counts {
		i := classOf(n, target)
		partitions[i] = append(partitions[i], p)
	}
	for i, list := range partitions {
		if len(list) == 0 {
			continue
		}
		c := classes[i]
		c.Text = human.Count(int64(len(list))) + " " + c.Text
		if i < 2 && len(list) < len(counts) {
			c.Text += ": " + human.Ranges(list)
		}
		if len(counts) <= maxCells {
			var cells strings.Builder
			for _, p := range list {
				fmt.Fprintf(&cells, "M%d %d%s", p%columns, p/columns, c.Shape)
			}
			c.Cells = cells.String()
		}
		all = append(all, c)
	}
	return all
}
