package load

import (
	"slices"

	"sequins/shard"
	"sequins/source"
	"sequins/store"
)

// Later reports whether the division of plan a is after that of plan b in the order of detection. Both are plans of one input. A load
// whose partitioner is refuted by a record is planned again with a later division, so of two nodes the one with the later division knows
// a record that the other has not read yet. The last one is String, not aligned. Divisions that no detection makes of one input
// are in an order, too, which is the same for all nodes.
func Later(a, b store.Manifest) bool {
	if order := slices.Compare(preference(a), preference(b)); order != 0 {
		return order > 0
	}
	return a.Content().Division > b.Content().Division
}

// preference returns the place of a division in the order in which Loader.detect takes the cuts of shard.Detector.Candidates.
func preference(m store.Manifest) []int {
	by, err := shard.ParsePartitioner(m.Partitioner)
	place := int(by)
	if err != nil || !m.Aligned && by == shard.String {
		place = len(shard.Partitioners())
	}
	aligned, whole := 1, 1
	if m.Aligned {
		aligned = 0
	}
	if m.Partitions == wholePartitions(m) {
		whole = 0
	}
	return []int{aligned, whole, place, m.Partitions}
}

// wholePartitions returns the number of partitions by the names of a plan's files if none is left out; 0 if they have no such number.
func wholePartitions(m store.Manifest) int {
	p := Plan{Format: m.Format}
	for _, f := range m.Files {
		p.Files = append(p.Files, source.File{Name: f.Name})
	}
	if len(p.Files) == 0 {
		return 0
	}
	names, err := p.place(0)
	if err != nil {
		return 0
	}
	return names.whole
}
