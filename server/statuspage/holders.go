package statuspage

import (
	"fmt"
	"maps"
	"slices"

	"sequins/internal/human"
	"sequins/observe/status"
)

// maxRanges limits what is shown of the partitions of a node.
const maxRanges = 300

// holdersView is who holds the partitions of a version.
type holdersView struct {
	Version, Title string
	Open           bool
	Classes        []note // the partitions by the number of nodes that hold them
	Nodes          []holder
}

// holder is what one node holds.
type holder struct{ Name, State, Held, Ranges string }

func newHolders(v *versionView, open bool) holdersView {
	counts := v.Holders()
	h := holdersView{Version: v.Name, Open: open, Classes: classesOf(counts, v.TargetReplication)}
	h.Title = fmt.Sprintf("%s, each wanted on %s", human.Plural(len(counts), "partition"), human.Plural(max(1, v.TargetReplication), "node"))
	names := slices.Sorted(maps.Keys(v.Nodes))
	if i := slices.IndexFunc(names, func(name string) bool { return v.Nodes[name].Partitioner != "" }); i >= 0 { // those of one plan have the same
		h.Title += ", divided by " + v.Nodes[names[i]].Partitioner
	}
	if len(names) < 2 {
		return h
	}
	for _, node := range names {
		n := v.Nodes[node]
		list := slices.Sorted(slices.Values(n.Partitions))
		one := holder{Name: node, Held: held(len(list), len(counts)), Ranges: human.RangesUpTo(list, maxRanges)}
		if len(list) == 0 {
			one.Ranges = "none"
		}
		if n.State != status.Active {
			one.State = string(n.State)
		}
		h.Nodes = append(h.Nodes, one)
	}
	return h
}

// classesOf divides the partitions by how many nodes hold them, and names those that lack a replica.
func classesOf(counts []int, target int) (all []note) {
	by := make(map[int][]int)
	for p, n := range counts {
		by[n] = append(by[n], p)
	}
	for _, n := range slices.Sorted(maps.Keys(by)) {
		level, text := status.LevelGood, human.Plural(len(by[n]), "partition")+" on "+human.Plural(n, "node")
		switch {
		case n == 0:
			level, text = status.LevelBad, human.Plural(len(by[n]), "partition")+" on no node"
		case n < target:
			level = status.LevelWarn
		}
		if level != status.LevelGood && len(by[n]) < len(counts) {
			text += ": " + human.Ranges(by[n])
		}
		all = append(all, note{Level: level, Text: text})
	}
	return all
}
