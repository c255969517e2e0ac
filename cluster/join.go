package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"sequins/zk"
)

const (
	// waitingPeriod is the time after which Join logs what it waits for. It is doubled with each line, up to maxWaitingPeriod.
	waitingPeriod    = 5 * time.Second
	maxWaitingPeriod = time.Minute
	// maxStraggle bounds how long Join waits for nodes that ZooKeeper was unreachable for, too: each tries to connect
	// once a second.
	maxStraggle = 3 * time.Second
	// pollPeriod is the polling interval of Join.
	pollPeriod = 10 * time.Millisecond
)

// Joining is what a node waits for that joins the cluster.
type Joining struct {
	// For is what it waits for, with the reason: "ZooKeeper (connection refused)", "2 nodes of 3". Without a connection, it is ZooKeeper.
	For string
	// ZooKeeper reports whether that is ZooKeeper, and not other nodes.
	ZooKeeper bool
	Since     time.Time // when it began to join
}

// Joining returns what Join waits for, and false unless it is running.
func (c *Cluster) Joining() (Joining, bool) {
	j := c.joining.Load()
	if j == nil {
		return Joining{}, false
	}
	return *j, true
}

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
	j.joining.Store(&Joining{For: "ZooKeeper", ZooKeeper: true, Since: j.began})
	defer j.joining.Store(nil)
	if err := j.publish(ctx); err != nil {
		j.nodes.Stop()
		return fmt.Errorf("joining the cluster: %w", err)
	}
	c.keep(c.ctx, j.nodes, nil, c.updateMembers)
	c.keep(c.ctx, c.o.Session.Watch(zk.PartitionsDir, false), nil, c.updateDatabases)
	c.running.Go(c.keepAssigned)
	changing := j.changing(j.quiet, j.nodes)
	err := j.until(ctx, func() string {
		reason, ms := changing(), c.members.Load()
		switch {
		case !ms.listed:
			return "ZooKeeper to list this node"
		case len(ms.all) < c.o.MinNodes:
			return fmt.Sprintf("%d nodes of %d", c.o.MinNodes-len(ms.all), c.o.MinNodes)
		case reason != "" || !ms.isOf(j.nodes.Entries()):
			return fmt.Sprintf("the %d nodes to stay the same for %s", len(ms.all), j.quiet)
		}
		return ""
	})
	if err != nil {
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
		j.published = append([]string{path}, paths...)
		j.o.Session.Publish(path, settings)
	}
	return nil
}

// until waits until blocked returns "", and logs its result at growing intervals: what lasts longer than the members have to stay the same
// is a warning, as is ZooKeeper.
func (j *joining) until(ctx context.Context, blocked func() string) error {
	period := waitingPeriod
	log := time.NewTimer(period)
	defer log.Stop()
	look := time.NewTicker(pollPeriod)
	defer look.Stop()
	for {
		reason := blocked()
		if reason == "" {
			return nil
		}
		if s := j.o.Session.Status(); !s.Connected { // the members are not known to change without it
			reason = zooKeeper(s)
		}
		now := Joining{For: reason, ZooKeeper: strings.HasPrefix(reason, "ZooKeeper"), Since: j.began}
		j.joining.Store(&now)
		select {
		case <-look.C:
		case <-log.C:
			level, since := slog.LevelInfo, time.Since(j.began)
			if now.ZooKeeper || since > j.quiet+2*waitingPeriod {
				level = slog.LevelWarn
			}
			j.log.Log(ctx, level, "joining the cluster; no requests for keys are answered before", "waiting_for", now.For, "since", since.Round(time.Second))
			period = min(2*period, maxWaitingPeriod)
			log.Reset(period)
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
		return zooKeeper(j.o.Session.Status())
	}
}

// zooKeeper names ZooKeeper as what a node waits for, with the last error of its session.
func zooKeeper(s zk.Status) string {
	if s.LastError == "" {
		return "ZooKeeper"
	}
	return "ZooKeeper (" + s.LastError + ")"
}

// changing returns a condition for until: directories have changed within a while, or may have: without ZooKeeper, no change is seen.
func (j *joining) changing(while time.Duration, dirs ...*zk.Children) func() string {
	var last []string
	since := time.Now()
	return func() string {
		var now []string
		status := j.o.Session.Status()
		current := status.Connected
		for _, d := range dirs {
			current = current && d.Current()
			for _, e := range d.Entries() {
				now = append(now, e.Name+" "+string(e.Data))
			}
		}
		if !current || !slices.Equal(last, now) {
			last, since = now, time.Now()
		}
		if min(time.Since(since), time.Since(status.Since)) < while {
			return fmt.Sprintf("the nodes to stay the same for %s, to choose a shard id", while)
		}
		return ""
	}
}
