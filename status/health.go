package status

import (
	"fmt"
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

// census counts the dbs of a node by their health.
type census struct {
	dbs             int
	served          int // with a current version
	unlisted        int // of those served: the db has an error as a whole, so that new versions are not found
	failed          int // of those served: another version failed to load
	unwanted        int // of those served: the pin does not allow the current version
	held            int // of those served: the gate holds another version
	underreplicated int // of those served: too few nodes hold some partition of the current version
	lost            int // of those served: no node holds some partition of the current version
}

func (c *census) add(db DB, node string) {
	c.dbs++
	current := db.Current(node)
	if current == "" {
		return
	}
	c.served++
	if !db.PinOn(node, node).Allows(current) {
		c.unwanted++
	}
	if db.Failed(node) {
		c.failed++
	}
	if db.Holds(node) != "" {
		c.held++
	}
	if db.Error != "" {
		c.unlisted++
	}
	switch v := db.Versions[current]; {
	case v.MissingPartitions > 0:
		c.lost++
	case v.UnderreplicatedPartitions > 0:
		c.underreplicated++
	}
}

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

// silent returns the number of other nodes whose status is unknown.
func (st Status) silent() int {
	n := 0
	for _, p := range st.Peers {
		if p.Error != "" {
			n++
		}
	}
	return n
}

// health returns a level and one line of text with the reason. A node that is not ready (with reason) is bad.
func (st Status) health(ready bool, reason string) (level, line string) {
	var c census
	for _, db := range st.DBs {
		c.add(db, st.Node)
	}
	all := human.Plural(c.dbs, "database")
	switch {
	case st.Draining:
		return LevelBad, "This node is shutting down."
	case !ready:
		return LevelBad, "Not ready: " + reason + "."
	case c.dbs == 0:
		return LevelWarn, "Ready, but there is no database in the source."
	case c.lost > 0:
		return LevelBad, fmt.Sprintf("Serving %s; %d with partitions that no node holds.", all, c.lost)
	case c.served < c.dbs:
		return LevelWarn, fmt.Sprintf("Serving %d of %s.", c.served, all)
	case c.unwanted > 0:
		return LevelBad, fmt.Sprintf("Serving %s; %d from a version that is excluded, or not the one that is pinned, as no other is ready.", all, c.unwanted)
	case c.held > 0:
		return LevelWarn, fmt.Sprintf("Serving %s; %d with a newer version that the gate holds.", all, c.held)
	case c.failed > 0:
		return LevelWarn, fmt.Sprintf("Serving %s; %d with a version that could not be loaded.", all, c.failed)
	case c.underreplicated > 0:
		return LevelWarn, fmt.Sprintf("Serving %s; %d with partitions that too few nodes hold.", all, c.underreplicated)
	case len(st.Problems) > 0:
		return LevelBad, "The nodes are not one cluster: " + st.Problems[0] + "."
	case st.ZooKeeper != nil && !st.ZooKeeper.Connected:
		return LevelWarn, "Serving " + all + ", but ZooKeeper cannot be reached."
	case st.silent() > 0:
		return LevelWarn, fmt.Sprintf("Serving %s, but %s did not answer.", all, human.Plural(st.silent(), "node"))
	case st.SourceError != "":
		return LevelWarn, "Serving " + all + ", but the source cannot be read."
	case len(Faults(st.Differences)) > 0:
		return LevelWarn, "Serving " + all + ", but the configurations of the nodes differ: " + differ(Faults(st.Differences)) + "."
	case st.ReloadError != "":
		return LevelWarn, "Serving " + all + ", but the last reload of the configuration has failed."
	case c.unlisted > 0:
		return LevelWarn, fmt.Sprintf("Serving %s; %d that cannot be listed in the source.", all, c.unlisted)
	}
	return LevelGood, "Serving " + all + "."
}
