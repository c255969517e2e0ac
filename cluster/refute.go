package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
)

// maxRefuted bounds the data of this node's znode, in bytes; other nodes read up
// to maxSettings.
const maxRefuted = maxSettings / 2

func (k key) String() string { return k.db + "/" + k.version }

// Refute implements version.Following. If the node's znode would become too large,
// it logs an error and publishes nothing.
func (f *following) Refute(partitioner string) {
	c, k := f.c, f.inSource().String()
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.refuted[k]
	if f.ctx.Err() != nil || slices.Contains(before, partitioner) {
		return
	}
	c.refuted[k] = slices.Sorted(slices.Values(append(slices.Clone(before), partitioner)))
	if data, err := c.nodeData(); err != nil || len(data) > maxRefuted {
		c.log.Error("cannot publish a refuted partitioner: this node has refuted too many",
			"db", f.db, "version", f.version, "partitioner", partitioner, "bytes", len(data), "error", err)
		c.restoreRefuted(k, before)
		return
	}
	c.republish()
	c.changed()
}

// Refuted implements version.Following.
func (f *following) Refuted() []string {
	c, k := f.c, f.inSource().String()
	c.mu.Lock()
	all := slices.Clone(c.refuted[k])
	c.mu.Unlock()
	for _, m := range c.members.Load().all {
		all = append(all, m.Refuted[k]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// forgetRefuted removes the refuted partitioners of a version. c.mu is held.
func (c *Cluster) forgetRefuted(k key) {
	if _, told := c.refuted[k.String()]; told {
		c.restoreRefuted(k.String(), nil)
		c.republish()
	}
}

func (c *Cluster) restoreRefuted(k string, before []string) {
	if before == nil {
		delete(c.refuted, k)
		return
	}
	c.refuted[k] = before
}

// nodeData returns the data of this node's znode. c.mu is held.
func (c *Cluster) nodeData() ([]byte, error) {
	data, err := json.Marshal(nodeData{c.o.Settings, c.refuted})
	if err != nil {
		return nil, fmt.Errorf("publishing this node's settings: %w", err)
	}
	return data, nil
}

// publishSelf publishes this node, or updates its data. c.mu is held. It does
// nothing after Leave.
func (c *Cluster) publishSelf() error {
	data, err := c.nodeData()
	if err == nil && c.ctx.Err() == nil && len(c.published) > 0 {
		c.o.Session.Publish(c.published[0], data)
	}
	return err
}

// republish is publishSelf for data that is known to be valid.
func (c *Cluster) republish() {
	if err := c.publishSelf(); err != nil {
		c.log.Error("cannot publish a change of this node", "error", err)
	}
}
