package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sequins/observe/status"
	"sequins/zk"
)

// Joining returns what Join waits for, with the reason: "ZooKeeper (connection refused)", "2 nodes of 3". It is nil before and after Join.
func (c *Cluster) Joining() *status.Wait { return c.joining.Load() }

// Join implements version.Cluster: it chooses a shard id if none is configured, publishes this node, and waits until a
// listing that contains this node has not changed for Converge and has MinNodes members. Then it follows a rule of assignment. It waits for
// ZooKeeper without a time limit. After awayAfter without ZooKeeper, what was remembered of the others before a restart stands in for it until
// Join returns.
func (c *Cluster) Join(ctx context.Context, away func(members []string) error) error {
	j := &joining{c: c, nodes: c.keep("", zk.NodesDir, c.updateMembers), began: time.Now(), quiet: c.o.Converge, startAway: away}
	defer j.c.joining.Store(nil)
	if err := j.publish(ctx); err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	c.o.Session.Watch(zk.PartitionsDir, c.updateDatabases) // no decision depends on Knows
	rules := c.keep("", zk.AssignmentDir, c.updateRule)
	c.running.Go(c.keepAssigned)
	err := j.until(ctx, j.quiet, func() string {
		switch ms := c.members.Load(); {
		case !ms.listed:
			return "ZooKeeper to list this node"
		case j.expectsOthers(ms):
			return "another node, as there were some before the restart"
		case c.o.Settings.Assignment == "" && !rules.Current():
			return "ZooKeeper to list the rule of assignment"
		case len(ms.all) < c.o.MinNodes:
			return fmt.Sprintf("%d nodes of %d", c.o.MinNodes-len(ms.all), c.o.MinNodes)
		}
		return ""
	})
	if err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	c.chooseRule()
	c.arrive()
	c.running.Go(c.keepRemembered)
	c.log.Info("joined the cluster", "nodes", len(c.members.Load().all), "shard_id", c.ShardID(),
		"address", c.o.Addr, "assignment", c.members.Load().rule, "after", time.Since(j.began).Round(time.Millisecond))
	return nil
}

// publish publishes this node.
func (j *joining) publish(ctx context.Context) error {
	err := j.until(ctx, 0, func() string {
		if j.nodes.Current() {
			return ""
		}
		return zooKeeper(j.c.o.Session.Status())
	})
	if err != nil {
		return err
	}
	if j.c.ShardID() == "" {
		id, err := j.chooseShardID(ctx)
		if err != nil {
			return err
		}
		j.c.self.Store(j.c.member(id))
	}
	settings, err := json.Marshal(j.c.o.Settings)
	if err != nil {
		return fmt.Errorf("publishing this node's settings: %w", err)
	}
	path := zk.NodePath(j.c.ShardID(), j.c.o.Addr)
	if j.c.o.Router {
		path = zk.RouterPath(j.c.ShardID(), j.c.o.Addr)
	}
	j.c.o.Session.Publish(path, settings)
	return nil
}

// Leave implements version.Cluster.
func (c *Cluster) Leave() {
	c.leave()
	c.o.Session.Close() //nolint:errcheck // never fails
	c.running.Wait()
}
