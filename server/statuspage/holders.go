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
	columns    = 64 // of a picture: with more partitions, it gets more rows, or a cell stands for several
	rows       = 32
	maxRanges  = 300
	maxHolders = 100 // nodes whose partitions are shown
)

// strip is a picture of partitions: a path for each colour, in cells of 1 by 1.
type strip struct {
	Label         string
	Width, Height int
	Ems           float64 // the width on the page
	Stretch       bool
	Paths         []path
}

type path struct{ Class, D string }

// The classes of partitions by the number of nodes that hold them. They differ in shape as well as in colour.
const (
	onNone = "r0"
	onFew  = "r1"
	wanted = "r2"
	onMany = "r3"
)

func class(n, target int) string {
	switch {
	case n == 0:
		return onNone
	case n < target:
		return onFew
	case n == target:
		return wanted
	}
	return onMany
}

// shapes are what is drawn in a cell, from its upper left corner on: all of it, its lower half, or a cross.
var shapes = map[string]string{
	onNone: "m.05 .2l.15-.15.3.3.3-.3.15.15-.3.3.3.3-.15.15-.3-.3-.3.3-.15-.15.3-.3z",
	onFew:  "m.05 .5h.9v.45h-.9z",
	wanted: "m.05 .05h.9v.9h-.9z",
	onMany: "m.05 .05h.9v.9h-.9zm.3.3v.3h.3v-.3z",
}

// holdersView is who holds the partitions of a version.
type holdersView struct {
	Version, Title string
	Open           bool
	Legend         []legend
	Scale          string
	Grid           strip
	Nodes          []holder
	MoreNodes      string
}

type legend struct {
	Class, D, Text string
	n              int // partitions
}

type holder struct {
	Name, State, Held, Ranges string
	Strip                     strip
}

func newHolders(name string, v *status.Version, open bool) holdersView {
	counts := v.Holders()
	h := holdersView{Version: name, Open: open, Legend: legendOf(counts, v.TargetReplication)}
	h.Title = fmt.Sprintf("%s, each wanted on %s", plural(len(counts), "partition"), plural(max(1, v.TargetReplication), "node"))
	names := slices.Sorted(maps.Keys(v.Nodes))
	if i := slices.IndexFunc(names, func(name string) bool { return v.Nodes[name].Partitioner != "" }); i >= 0 { // those of one plan have the same
		h.Title += ", divided by " + v.Nodes[names[i]].Partitioner
	}
	h.Grid = grid(counts, v.TargetReplication)
	var texts []string
	for _, l := range h.Legend {
		texts = append(texts, l.Text)
	}
	h.Grid.Label = "Partitions by the number of nodes that hold them. " + strings.Join(texts, "; ")
	if per := perCell(len(counts), columns*rows); per > 1 {
		h.Scale = fmt.Sprintf("each cell: %d partitions, drawn as the worst of them", per)
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
	list := slices.Clone(n.Partitions)
	slices.Sort(list)
	h := holder{Name: name, Held: held(len(list), partitions), Ranges: human.RangesUpTo(list, maxRanges), Strip: density(list, partitions)}
	if len(list) == 0 {
		h.Ranges = "none"
	}
	if n.State != status.Active {
		h.State = string(n.State)
	}
	h.Strip.Ems = max(h.Strip.Ems, 1)
	h.Strip.Label = fmt.Sprintf("%s of %s", human.Count(int64(len(list))), plural(partitions, "partition"))
	return h
}

// plural is human.Plural with thousands set apart.
func plural(n int, thing string) string {
	return human.Count(int64(n)) + strings.TrimLeft(human.Plural(n, thing), "0123456789")
}

// legendOf counts the partitions of each class, and names those that lack a replica.
func legendOf(counts []int, target int) (all []legend) {
	by := make(map[string][]int)
	for p, n := range counts {
		c := class(n, target)
		by[c] = append(by[c], p)
	}
	for _, k := range []struct{ class, text string }{{onNone, "on no node"}, {onFew, "on too few nodes"}, {wanted, "on as many nodes as wanted"}, {onMany, "on more nodes than wanted"}} {
		list := by[k.class]
		if len(list) == 0 {
			continue
		}
		text := human.Count(int64(len(list))) + " " + k.text
		if k.class < wanted && len(list) < len(counts) {
			text += ": " + human.Ranges(list)
		}
		all = append(all, legend{k.class, "M0 0" + shapes[k.class], text, len(list)})
	}
	return all
}

// perCell returns the number of partitions in a cell, for a picture of at most some cells.
func perCell(partitions, cells int) int { return max(1, (partitions+cells-1)/cells) }

// summaryStrip is a bar of all partitions, divided by class. What there is little of is still seen.
func summaryStrip(v *status.Version) strip {
	const width, least = 100, 3
	counts := v.Holders()
	s := strip{Width: width, Height: 10, Ems: 7, Stretch: true}
	all, x := legendOf(counts, v.TargetReplication), 0
	var texts []string
	for i, l := range all {
		w := max(least, width*l.n/len(counts))
		if i == len(all)-1 {
			w = width - x
		}
		s.Paths = append(s.Paths, path{l.Class, fmt.Sprintf("M%d 0h%dv10h-%dz", x, w, w)})
		x += w
		texts = append(texts, l.Text)
	}
	s.Label = strings.Join(texts, "; ")
	return s
}

// grid is the picture of all partitions. A cell of several has the class of the one that fewest nodes hold.
func grid(counts []int, target int) strip {
	per := perCell(len(counts), columns*rows)
	cells := (len(counts) + per - 1) / per
	s := strip{Width: max(1, min(cells, columns)), Height: max(1, (cells+columns-1)/columns)}
	s.Ems = float64(s.Width)
	drawn := make(map[string]*strings.Builder)
	for c := range cells {
		k := class(slices.Min(counts[c*per:min((c+1)*per, len(counts))]), target)
		b := drawn[k]
		if b == nil {
			b = new(strings.Builder)
			drawn[k] = b
		}
		fmt.Fprintf(b, "M%d %d%s", c%columns, c/columns, shapes[k])
	}
	for _, k := range slices.Sorted(maps.Keys(drawn)) {
		s.Paths = append(s.Paths, path{k, drawn[k].String()})
	}
	return s
}

// shares are the classes of how much of a cell's partitions a node holds: some, half, most, all.
var shares = []string{"s1", "s2", "s3", "s4"}

// density is the picture of the partitions that one node holds, in the cells of grid. Neighbours of equal share are one rectangle.
func density(list []int, partitions int) strip {
	per := perCell(partitions, columns*rows)
	cells := (partitions + per - 1) / per
	s := strip{Width: max(1, min(cells, columns)), Height: max(1, (cells+columns-1)/columns)}
	s.Ems = float64(s.Width) / 6
	counts := make([]int, cells)
	for _, p := range list {
		if p >= 0 && p < partitions {
			counts[p/per]++
		}
	}
	levels := make([]int, cells)
	for c, n := range counts {
		levels[c] = shareOf(n, min(per, partitions-c*per))
	}
	drawn := make([]strings.Builder, len(shares))
	for c := 0; c < cells; {
		from := c
		for c++; c < cells && c%columns > 0 && levels[c] == levels[from]; c++ {
		}
		if level := levels[from]; level >= 0 {
			fmt.Fprintf(&drawn[level], "M%d %dh%dv1h-%dz", from%columns, from/columns, c-from, c-from)
		}
	}
	for i := range drawn {
		if drawn[i].Len() > 0 {
			s.Paths = append(s.Paths, path{shares[i], drawn[i].String()})
		}
	}
	return s
}

// shareOf returns the index in shares of n of all; -1 for none.
func shareOf(n, all int) int {
	switch {
	case n == 0:
		return -1
	case n >= all:
		return 3
	}
	return min(2, 3*n/all)
}
