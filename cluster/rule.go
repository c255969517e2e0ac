package cluster

import (
	"fmt"
	"slices"

	"sequins/shard"
	"sequins/zk"
)

// The rule by which a cluster assigns partitions is the name of a persistent znode (zk.AssignmentPath), which the first node
// creates. A node follows it unless its own settings name a rule. A node that follows none yet chooses one at the end of
// Join; from then on it follows one, whatever happens to the znode.

// updateRule follows the listed rule. Of several, the last one by name counts: round_robin, under which every kind of node
// has a share. If none is listed, ZooKeeper has lost it, and this node creates it again.
func (c *Cluster) updateRule(entries []zk.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var listed shard.Assignment
	c.unknownRule = ""
	for _, e := range entries {
		switch rule := shard.Assignment(e.Name); rule {
		case shard.Balanced, shard.RoundRobin:
			listed = rule
		default:
			c.unknownRule = fmt.Sprintf("znode %.80q is no rule of assignment that this node knows; it follows another one, "+
				"and nodes that know this one divide the data differently; delete the znode", zk.AssignmentPath(e.Name))
		}
	}
	switch {
	case listed == "" && c.rule != "":
		c.createRule()
	case listed != c.rule:
		if c.rule != "" {
			c.log.Warn("the cluster's rule of assignment has changed", "before", c.rule, "now", listed)
		}
		c.rule = listed
	}
	c.updateMembership()
}

// chooseRule lets this node follow a rule if none is known.
func (c *Cluster) chooseRule() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rule != "" || c.o.Settings.Assignment != "" {
		return
	}
	c.rule = shard.Balanced
	if slices.ContainsFunc(c.Members(), func(m Member) bool { return m.settings().Assignment == shard.RoundRobin }) {
		c.rule = shard.RoundRobin
	}
	c.createRule()
	c.updateMembership()
}

// createRule creates the znode of the rule that this node follows, if it holds partitions by it and no other rule is listed.
// c.mu is held.
func (c *Cluster) createRule() {
	if !c.o.Router && c.o.Settings.Assignment == "" && c.unknownRule == "" {
		c.o.Session.Create(zk.AssignmentPath(string(c.rule)))
	}
}
