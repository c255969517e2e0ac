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
	descZooKeeperConnected = prometheus.NewDesc("sequins_zookeeper_connected",
		"1 if the node has a session with ZooKeeper, else 0.", nil, nil)
	descZooKeeperSessions = prometheus.NewDesc("sequins_zookeeper_sessions_total",
		"Sessions with ZooKeeper since the start. Each one but the first replaced an expired one.", nil, nil)
	descZooKeeperZnodes = prometheus.NewDesc("sequins_zookeeper_znodes",
		"Znodes of this node: published, or pending if ZooKeeper does not have their current form yet.", []string{"state"}, nil)
	descClusterNodes = prometheus.NewDesc("sequins_cluster_nodes",
		"Nodes that hold data, including this one and without routers, as seen by this node.", nil, nil)
	descClusterProblems = prometheus.NewDesc("sequins_cluster_problems",
		"Settings of other nodes that differ from those of this node, so that they divide the data differently.", nil, nil)
	descClusterDifferences = prometheus.NewDesc("sequins_cluster_differences",
		"Settings that the nodes should have alike, and have not.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *Cluster) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descZooKeeperConnected, descZooKeeperSessions, descZooKeeperZnodes, descClusterNodes, descClusterProblems, descClusterDifferences} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Cluster) Collect(ch chan<- prometheus.Metric) {
	f := c.state.Load()
	if f == nil {
		return
	}
	s := (*f)()
	emit(ch, descZooKeeperConnected, flag(s.Connected))
	count(ch, descZooKeeperSessions, uint64(max(0, s.Sessions)))
	emit(ch, descZooKeeperZnodes, float64(s.Published), "published")
	emit(ch, descZooKeeperZnodes, float64(s.Pending), "pending")
	emit(ch, descClusterNodes, float64(s.Nodes))
	emit(ch, descClusterProblems, float64(s.Problems))
	emit(ch, descClusterDifferences, float64(c.differences.Load()))
}
