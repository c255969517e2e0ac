package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// ClusterState is the state of the node in the cluster that the gauges report.
type ClusterState struct {
	// Connected: there is a session with ZooKeeper. Sessions counts sessions
	// since the start.
	Connected bool
	Sessions  int
	// Published and Pending count the znodes that are in their desired state, and
	// those that are not.
	Published, Pending int
	// Nodes are the nodes that data is divided among, including this one.
	// Problems are differences in settings that keep them from forming one
	// cluster.
	Nodes, Problems int
}

// Cluster reports the node's state in the cluster. It reports nothing without
// SetState. It implements prometheus.Collector.
type Cluster struct {
	state       atomic.Pointer[func() ClusterState]
	differences atomic.Int64
}

// SetState sets the function that is called at each scrape.
func (c *Cluster) SetState(f func() ClusterState) { c.state.Store(&f) }

// SetDifferences sets how many settings the nodes do not have alike.
func (c *Cluster) SetDifferences(n int) { c.differences.Store(int64(n)) }

var (
	ofCluster families

	zooKeeperConnected = ofCluster.gauge("sequins_zookeeper_connected", "1 if the node has a session with ZooKeeper, else 0.")
	zooKeeperSessions  = ofCluster.counter("sequins_zookeeper_sessions_total",
		"Sessions with ZooKeeper since the start. Each one but the first replaced an expired one.")
	zooKeeperZnodes = ofCluster.gauge("sequins_zookeeper_znodes",
		"Znodes of this node: published, or pending if ZooKeeper does not have their current form yet.", "state")
	clusterNodes = ofCluster.gauge("sequins_cluster_nodes",
		"Nodes that hold data, including this one and without routers, as seen by this node.")
	clusterProblems = ofCluster.gauge("sequins_cluster_problems",
		"Settings of other nodes that differ from those of this node, so that they divide the data differently.")
	clusterDifferences = ofCluster.gauge("sequins_cluster_differences", "Settings that the nodes should have alike, and have not.")
)

// Describe implements prometheus.Collector.
func (c *Cluster) Describe(ch chan<- *prometheus.Desc) { ofCluster.describe(ch) }

// Collect implements prometheus.Collector.
func (c *Cluster) Collect(ch chan<- prometheus.Metric) {
	f := c.state.Load()
	if f == nil {
		return
	}
	s := (*f)()
	zooKeeperConnected.emit(ch, flag(s.Connected))
	zooKeeperSessions.emit(ch, float64(max(0, s.Sessions)))
	zooKeeperZnodes.emit(ch, float64(s.Published), "published")
	zooKeeperZnodes.emit(ch, float64(s.Pending), "pending")
	clusterNodes.emit(ch, float64(s.Nodes))
	clusterProblems.emit(ch, float64(s.Problems))
	clusterDifferences.emit(ch, float64(c.differences.Load()))
}
