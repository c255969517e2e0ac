package status

import (
	"maps"
	"slices"
	"strings"
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

// holds reports whether the gate holds a version of the db on a node.
func (d DB) holds(node string) bool {
	for _, v := range d.Versions {
		if v.Nodes[node].State == Held {
			return true
		}
	}
	return false
}

// Health returns the level of a db on a node, one line with the version that is served, and the section of the runbook on what is
// wrong, "" if there is none.
func (d DB) Health(node string) (level, line, runbook string) {
	current := d.Current(node)
	if current == "" {
		return LevelBad, "nothing to serve yet", "sequinsnotserving"
	}
	for _, f := range append(slices.Clone(faults), unlistable) {
		if f.found(d, node) {
			return f.level, "serving " + current, f.runbook
		}
	}
	if d.Asked().NearlyAllMiss() {
		return LevelWarn, "serving " + current, ""
	}
	return LevelGood, "serving " + current, ""
}

// health sets the level of the health, one line of text with the reason, and the section of the runbook. A node that is not ready (with
// reason) is bad.
func (st *Status) health(ready bool, reason string) {
	st.Level, st.Health, st.Runbook = LevelGood, st.serving()+".", ""
	switch {
	case st.Draining:
		st.Level, st.Health, st.Runbook = LevelBad, "This node is shutting down.", "not-ready"
		return
	case !ready:
		st.Level, st.Health, st.Runbook = LevelBad, "Not ready: "+reason+".", "not-ready"
		return
	}
	var first Finding
	for _, f := range st.Findings() {
		count, ofDBs := strings.CutPrefix(f.health, st.serving()+"; ")
		switch {
		case f.Level == LevelNote:
		case first.Level == "":
			first = f
			st.Level, st.Health, st.Runbook = f.Level, st.says(f), f.Runbook
		case ofDBs && first.Text == "":
			st.Health = strings.TrimSuffix(st.Health, ".") + "; " + count
		}
	}
}
