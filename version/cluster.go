package version

import (
	"context"
	"time"
)

// Cluster is what a node knows of the other nodes, and publishes to them. All
// methods may be called concurrently. Only Join and Follow block.
type Cluster interface {
	// Join publishes this node, and returns when the other nodes are known or ctx
	// ends.
	Join(ctx context.Context) error
	// Leave withdraws everything published, within a few seconds. Nothing is
	// published after it, and every Following keeps its last view.
	Leave()

	// Follow follows a version until Stop, and returns when its replicas are known
	// or ctx ends. The version is named by its id on this node (see Revise); other
	// nodes are told its name and plan. Following a followed version returns the
	// same Following.
	Follow(ctx context.Context, db, version string) Following

	// Knows reports whether any node holds partitions of a db. Databases returns all
	// of which that is so, sorted.
	Knows(db string) bool
	Databases() []string

	// Linger returns how long a replaced version stays after the last request for
	// it, given the configured time. A cluster may need longer, for nodes that
	// switch later.
	Linger(configured time.Duration) time.Duration

	// Changes receives a value when a result of these methods or of those of a
	// Following may have changed; nil if they never change.
	Changes() <-chan struct{}
}

// Following is what a node knows of the replicas of one version on other nodes,
// and publishes of its own. All methods may be called concurrently. None blocks:
// they use a view that is updated in the background. Those that return something
// change nothing. In several of them, held reports for each partition whether this
// node holds it.
type Following interface {
	// SetPlan sets the plan by which this node holds, or will load, the version
	// (see store.Manifest.PlanHash), and divides the version unless it already
	// is divided by that plan. From then on replicas by other plans are neither
	// Peers nor counted, and partitions advertised by another plan are withdrawn.
	SetPlan(plan string, held []bool)

	// Refute publishes that this node has found a record that a partitioner would
	// not have put in its file, so that the version is not partitioned by it. It
	// stays published until no revision of the version is followed.
	Refute(partitioner string)
	// Refuted returns the partitioners that any node, including this one, has
	// refuted, sorted. The names are not validated.
	Refuted() []string

	// Owned returns the partitions that this node has to hold, ascending. After
	// SetPlan the result only changes together with Changes; before, it is what
	// SetPlan would result in now.
	Owned(held []bool) []int

	// Owners returns the addresses (host:port) of the nodes, including this one,
	// that have to hold each partition by this node's division, and that are members
	// now. self is this node's address. There are none before SetPlan, and without
	// other nodes.
	Owners() (byPartition [][]string, self string)

	// Peers returns the addresses (host:port) of the other nodes known to hold a
	// partition by the same plan. The result is read-only. It is called for
	// requests.
	Peers(partition int) []string

	// Replicas returns how many other nodes advertise a partition by the plan of
	// SetPlan, or by any plan if none is set. There may be more Peers: nodes that
	// cannot advertise at the moment.
	Replicas(partition int) int

	// OtherPlans returns the plans other than that of SetPlan by which nodes say
	// that they hold partitions, sorted. Without SetPlan there are none.
	OtherPlans() []string

	// Advertise tells the others that this node holds a partition. Withdraw
	// takes that back, for all partitions if none is named.
	Advertise(partition int)
	Withdraw(partitions ...int)

	// Missing returns the partitions that have fewer than minReplication replicas,
	// including that of this node, ascending.
	Missing(held []bool, minReplication int) []int

	// Surplus returns the partitions that this node holds but no longer owns, and
	// that all their owners hold.
	Surplus(held []bool) []int

	// Switched tells that this node has switched to the version. Until then, and
	// until each partition has enough replicas, the version is divided again
	// whenever the members change; after that, only to replace what is missing for
	// long.
	Switched()

	// Report publishes what this node reports of the version (see package gate), by
	// the plan of SetPlan; nil withdraws it. data must not be modified later.
	Report(data []byte)
	// Reports returns what the other nodes report of the version, by their address,
	// and whether that is known: not before the first call has led to an answer. The
	// result is read-only, and a slice stays the same until its content changes.
	Reports() (reports map[string][]byte, known bool)

	// Stop withdraws everything published of the version. The view is not updated
	// after it, and nothing is published.
	Stop()
}

// Solo is a cluster of one node, and the Following of each of its versions: it
// holds every partition, has no peers, and no node requests a version that it has
// replaced.
type Solo struct{}

var (
	_ Cluster   = Solo{}
	_ Following = Solo{}
)

// Join returns at once.
func (Solo) Join(context.Context) error { return nil }

// Leave does nothing.
func (Solo) Leave() {}

// Follow returns at once.
func (Solo) Follow(ctx context.Context, db, version string) Following { return Solo{} }

// Knows returns false.
func (Solo) Knows(string) bool { return false }

// Databases returns nil.
func (Solo) Databases() []string { return nil }

// Linger returns 0.
func (Solo) Linger(time.Duration) time.Duration { return 0 }

// Changes returns nil.
func (Solo) Changes() <-chan struct{} { return nil }

// SetPlan does nothing.
func (Solo) SetPlan(plan string, held []bool) {}

// Refute does nothing.
func (Solo) Refute(partitioner string) {}

// Refuted returns nil.
func (Solo) Refuted() []string { return nil }

// Owned returns all partitions.
func (Solo) Owned(held []bool) []int {
	all := make([]int, len(held))
	for p := range all {
		all[p] = p
	}
	return all
}

// Owners returns nil.
func (Solo) Owners() ([][]string, string) { return nil, "" }

// Peers returns nil.
func (Solo) Peers(partition int) []string { return nil }

// Replicas returns 0.
func (Solo) Replicas(partition int) int { return 0 }

// OtherPlans returns nil.
func (Solo) OtherPlans() []string { return nil }

// Advertise does nothing.
func (Solo) Advertise(partition int) {}

// Withdraw does nothing.
func (Solo) Withdraw(partitions ...int) {}

// Missing returns the partitions that are not held. It ignores minReplication, as
// there cannot be more than one replica.
func (Solo) Missing(held []bool, minReplication int) []int {
	var missing []int
	for p, h := range held {
		if !h {
			missing = append(missing, p)
		}
	}
	return missing
}

// Surplus returns nil.
func (Solo) Surplus(held []bool) []int { return nil }

// Switched does nothing.
func (Solo) Switched() {}

// Report does nothing.
func (Solo) Report([]byte) {}

// Reports returns that there are none.
func (Solo) Reports() (map[string][]byte, bool) { return nil, true }

// Stop does nothing.
func (Solo) Stop() {}
