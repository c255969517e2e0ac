package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sequins/observe/status"
	"sequins/zk"
)

// Joining returns what Join waits for, with the reason: "ZooKeeper (connection refused)", "2 nodes of 3". It is nil before and after Join.
func (c *Cluster) Joining() *status.Wait { return c.joining.Load() }

// Join implements version.Cluster: it chooses a shard id if none is configured, publishes this node, and waits until a
// listing that contains this node has not changed for Converge and has MinNodes members. It waits for ZooKeeper without
// a time limit. After awayAfter without ZooKeeper, what was remembered of the others before a restart stands in for it until Join returns; then a listing
// without another node, unless MinNodes allows it, is one that the others have not reached yet.
func (c *Cluster) Join(ctx context.Context, away func(members []string)) error {
	j := &joining{Cluster: c, nodes: c.keep(c.ctx, zk.NodesDir, true, nil, c.updateMembers), began: time.Now(), quiet: c.o.Converge, startAway: away}
	defer j.joining.Store(nil)
	if err := j.publish(ctx); err != nil {
		j.nodes.Stop()
		return fmt.Errorf("joining the cluster: %w", err)
	}
	c.keep(c.ctx, zk.PartitionsDir, false, nil, c.updateDatabases)
	c.running.Go(c.keepAssigned)
	err := j.until(ctx, j.quiet, func() string {
		switch ms := c.members.Load(); {
		case !ms.listed:
			return "ZooKeeper to list this node"
		case c.o.MinNodes == 0 && c.away.Load() && len(c.recalled.Load().members) > 0 && !slices.ContainsFunc(ms.all, func(m Member) bool { return m.Addr != c.o.Addr }):
			return "another node, as there were some before the restart"
		case len(ms.all) < c.o.MinNodes:
			return fmt.Sprintf("%d nodes of %d", c.o.MinNodes-len(ms.all), c.o.MinNodes)
		}
		return ""
	})
	if err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	c.arrive()
	c.running.Go(c.keepRemembered)
	c.log.Info("joined the cluster", "nodes", len(c.members.Load().all), "shard_id", c.ShardID(),
		"address", c.o.Addr, "after", time.Since(j.began).Round(time.Millisecond))
	return nil
}

// publish publishes this node.
func (j *joining) publish(ctx context.Context) error {
	err := j.until(ctx, 0, func() string {
		if j.nodes.Current() {
			return ""
		}
		return zooKeeper(j.o.Session.Status())
	})
	if err != nil {
		return err
	}
	if j.ShardID() == "" {
		id, err := j.chooseShardID(ctx)
		if err != nil {
			return err
		}
		j.self.Store(j.member(id))
	}
	settings, err := json.Marshal(j.o.Settings)
	if err != nil {
		return fmt.Errorf("publishing this node's settings: %w", err)
	}
	path := zk.NodePath(j.ShardID(), j.o.Addr)
	if j.o.Router {
		path = zk.RouterPath(j.ShardID(), j.o.Addr)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ctx.Err() == nil {
		j.o.Session.Publish(path, settings)
	}
	return nil
}

// Leave implements version.Cluster.
func (c *Cluster) Leave() {
	c.mu.Lock()
	c.leave()
	c.o.Session.UnpublishAll()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := c.o.Session.Flush(ctx); err != nil {
		c.log.Warn("could not announce the shutdown to other nodes; they will notice when the session expires", "error", err)
	}
	c.running.Wait()
}

// leaveTimeout bounds how long Leave waits for ZooKeeper.
const leaveTimeout = 2 * time.Second
