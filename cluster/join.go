package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sequins/zk"
)

const (
	// waitingPeriod is the interval of log lines while Join waits.
	waitingPeriod = 5 * time.Second
	// maxStraggle bounds how long Join waits for nodes that ZooKeeper was unreachable for, too: each tries to connect
	// once a second.
	maxStraggle = 3 * time.Second
	// pollPeriod is the polling interval of Join.
	pollPeriod = 10 * time.Millisecond
)

// joining is the state of Join.
type joining struct {
	*Cluster
	nodes *zk.Children
	began time.Time
	// quiet is how long the members have to stay the same.
	quiet time.Duration
}

// Join implements version.Cluster: it chooses a shard id if none is configured, publishes this node, and waits until a
// listing that contains this node has not changed for Converge and has MinNodes members. It waits for ZooKeeper without
// a time limit.
func (c *Cluster) Join(ctx context.Context) error {
	j := &joining{Cluster: c, nodes: c.o.Session.Watch(zk.NodesDir, true), began: time.Now()}
	if err := j.publish(ctx); err != nil {
		j.nodes.Stop()
		return fmt.Errorf("joining the cluster: %w", err)
	}
	c.running.Go(func() { c.watchMembers(j.nodes) })
	c.running.Go(c.watchDatabases)
	c.running.Go(c.keepDivided)
	if err := j.until(ctx, j.unsettled); err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	c.log.Info("joined the cluster", "nodes", len(c.members.Load().all), "shard_id", c.ShardID(),
		"address", c.o.Addr, "after", time.Since(j.began).Round(time.Millisecond))
	return nil
}

// publish publishes this node.
func (j *joining) publish(ctx context.Context) error {
	if err := j.until(ctx, j.unseen(j.nodes)); err != nil {
		return err
	}
	// The longer ZooKeeper was unreachable for this node, the later other nodes may join.
	j.quiet = max(j.o.Converge, min(time.Since(j.began), maxStraggle))
	var paths []string
	if id := j.ShardID(); id == "" {
		id, err := j.chooseShardID(ctx)
		if err != nil {
			return err
		}
		paths = append(paths, zk.ShardIDPath(id))
		j.self.Store(j.member(id))
	}
	path := zk.NodePath(j.ShardID(), j.o.Addr)
	if j.o.Router {
		path = zk.RouterPath(j.ShardID(), j.o.Addr)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.published = append([]string{path}, paths...)
	return j.publishSelf()
}

// until waits until blocked returns "", and logs its result periodically. The error is that of ctx.
func (j *joining) until(ctx context.Context, blocked func() string) error {
	log := time.NewTicker(waitingPeriod)
	defer log.Stop()
	look := time.NewTicker(pollPeriod)
	defer look.Stop()
	for {
		reason := blocked()
		if reason == "" {
			return nil
		}
		select {
		case <-look.C:
		case <-log.C:
			j.log.Info("joining the cluster", "waiting_for", reason, "since", time.Since(j.began).Round(time.Second))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", reason, ctx.Err())
		}
	}
}

// unseen returns a condition for until: a directory has been listed.
func (j *joining) unseen(dir *zk.Children) func() string {
	return func() string {
		select {
		case <-dir.Seen():
			return ""
		default:
		}
		if s := j.o.Session.Status(); s.LastError != "" {
			return "ZooKeeper (" + s.LastError + ")"
		}
		return "ZooKeeper"
	}
}

// unsettled returns what Join still waits for; "" if nothing.
func (j *joining) unsettled() string {
	ms := j.members.Load()
	switch {
	case !ms.listed:
		return "ZooKeeper to list this node"
	case len(ms.all) < j.o.MinNodes:
		return fmt.Sprintf("%d nodes of %d", j.o.MinNodes-len(ms.all), j.o.MinNodes)
	case min(time.Since(ms.since), j.connected()) < j.quiet || !j.nodes.Current() || !ms.isOf(j.nodes.Entries()):
		return fmt.Sprintf("the %d nodes to stay the same for %s", len(ms.all), j.quiet)
	}
	return ""
}

// connected returns for how long ZooKeeper has been connected: without a connection, no change is seen.
func (j *joining) connected() time.Duration {
	s := j.o.Session.Status()
	if !s.Connected {
		return 0
	}
	return time.Since(s.Since)
}

// quietly returns a condition for until: directories have not changed for a while.
func (j *joining) quietly(while time.Duration, dirs ...*zk.Children) func() string {
	var last []string
	since := time.Now()
	return func() string {
		var now []string
		current := true
		for _, d := range dirs {
			current = current && d.Current()
			for _, e := range d.Entries() {
				now = append(now, e.Name)
			}
		}
		if !current || !slices.Equal(last, now) {
			last, since = now, time.Now()
		}
		if min(time.Since(since), j.connected()) < while {
			return fmt.Sprintf("the nodes to stay the same for %s, to choose a shard id", while)
		}
		return ""
	}
}
