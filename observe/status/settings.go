package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Settings are the settings of a node that all nodes of a cluster should have alike, by their keys in the configuration.
type Settings map[string]string

const (
	// SettingBuild is the name by which the version of the program is compared, too. It differs while a cluster is upgraded.
	SettingBuild = "version of sequins"
	// settingSource may differ on purpose, as the same data can be mounted in different places.
	settingSource = "source"
)

// Difference is a setting that the nodes of a cluster should have alike, and have not.
type Difference struct {
	Setting string         `json:"setting"`
	Values  []SettingValue `json:"values"` // the one of most nodes first
}

// SettingValue is a value of a setting, and the nodes that have it.
type SettingValue struct {
	Value string   `json:"value"`
	Nodes []string `json:"nodes"`
}

// String returns the difference in one line.
func (d Difference) String() string {
	var parts []string
	for _, v := range d.Values {
		parts = append(parts, v.Value+" on "+strings.Join(v.Nodes, ", "))
	}
	return d.Setting + " differs: " + strings.Join(parts, "; ")
}

const (
	// maxDifferences, maxSettings and maxSettingText limit what other nodes can make this one keep.
	maxDifferences = 100
	maxSettings    = 10_000
	maxSettingText = 300
	// notSet is the value of a setting of a database where a node has none of its own.
	notSet = "the value for all databases"
)

// Compare returns the settings that differ between nodes, by address, in the order of their names. A node of an older release does not tell
// its settings, or does not have all of them: it is compared by those that it has.
func Compare(nodes map[string]Settings) (all []Difference) {
	known := make(map[string]bool)
	for _, settings := range nodes {
		for _, name := range slices.Sorted(maps.Keys(settings))[:min(len(settings), maxSettings)] {
			known[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		values := make(map[string][]string) // nodes by value
		for _, addr := range slices.Sorted(maps.Keys(nodes)) {
			value, set := nodes[addr][name]
			if !set && strings.HasPrefix(name, "db.") && len(nodes[addr]) > 0 {
				value, set = notSet, true
			}
			if set {
				values[bounded(value)] = append(values[bounded(value)], addr)
			}
		}
		if len(values) > 1 && len(all) < maxDifferences {
			d := Difference{Setting: bounded(name)}
			for _, value := range slices.Sorted(maps.Keys(values)) {
				d.Values = append(d.Values, SettingValue{value, values[value]})
			}
			slices.SortStableFunc(d.Values, func(a, b SettingValue) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
			all = append(all, d)
		}
	}
	return all
}

func bounded(text string) string {
	if len(text) > maxSettingText {
		return strings.ToValidUTF8(text[:maxSettingText], "") + "…"
	}
	return text
}

// IsFault reports whether the difference should not be: not that of the program's version, nor that of the source.
func (d Difference) IsFault() bool { return d.Setting != SettingBuild && d.Setting != settingSource }
