package status

import (
	"maps"
	"slices"

	"sequins/internal/human"
)

// Levels of health.
const (
	LevelGood = "good"
	LevelWarn = "warn"
	LevelBad  = "bad"
)

// Current returns the version of a db that a node serves, "" if there is none.
func (d DB) Current(node string) string {
	for _, name := range slices.Sorted(maps.Keys(d.Versions)) {
		if d.Versions[name].Nodes[node].Current {
			return name
		}
	}
	return ""
}

// Failed reports whether a version of a db failed to load on a node.
func (d DB) Failed(node string) bool {
	for _, v := range d.Versions {
		n := v.Nodes[node]
		if n.State == Error || (n.State == Building || n.State == Available) && n.Error != "" { // it is being tried again, or will be
			return true
		}
	}
	return false
}

// Holds returns the version of a db that the gate holds on a node, "" if there is none.
func (d DB) Holds(node string) string {
	held := ""
	for name, v := range d.Versions {
		if v.Nodes[node].State == Held {
			held = max(held, name)
		}
	}
	return held
}

// Health returns the level of a db on a node, and one line with the version that is served.
func (d DB) Health(node string) (level, line string) {
	current := d.Current(node)
	if current == "" {
		return LevelBad, "nothing to serve yet"
	}
	v := d.Versions[current]
	switch {
	case v.MissingPartitions > 0, !d.PinOn(node, node).Allows(current):
		level = LevelBad
	case v.UnderreplicatedPartitions > 0, d.Failed(node), d.Holds(node) != "", d.Error != "":
		level = LevelWarn
	default:
		level = LevelGood
	}
	return level, "serving " + current
}

// health returns a level and one line of text with the reason. A node that is not ready (with reason) is bad.
func (st *Status) health(ready bool, reason string) (level, line string) {
	switch {
	case st.Draining:
		return LevelBad, "This node is shutting down."
	case !ready:
		return LevelBad, "Not ready: " + reason + "."
	}
	for _, f := range st.Findings() {
		if f.Level != LevelNote {
			return f.Level, f.health
		}
	}
	return LevelGood, "Serving " + human.Plural(len(st.DBs), "database") + "."
}
