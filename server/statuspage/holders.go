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

// classesOf divides the partitions by whether as many nodes hold them as wanted, and names those that lack a replica.
func classesOf(counts []int, target int) (all []note) {
	var none, few, enough, more []int
	for p, n := range counts {
		switch {
		case n == 0:
			none = append(none, p)
		case n < target:
			few = append(few, p)
		case n == target:
			enough = append(enough, p)
		default:
			more = append(more, p)
		}
	}
	add := func(partitions []int, level, text string) {
		if len(partitions) == 0 {
			return
		}
		text = human.Count(int64(len(partitions))) + " " + text
		if level != status.LevelGood && len(partitions) < len(counts) {
			text += ": " + human.Ranges(partitions)
		}
		all = append(all, note{Level: level, Text: text})
	}
	add(none, status.LevelBad, "on no node")
	add(few, status.LevelWarn, "on too few nodes")
	add(enough, status.LevelGood, "on as many nodes as wanted")
	add(more, status.LevelGood, "on more nodes than wanted")
	return all
}
