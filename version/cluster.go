package version

import (
	"context"
	"time"
)

// Cluster is what a node knows of the other nodes, and publishes to them. Versions
// are named by their ids on this node (see Revise); other nodes are told their names
// and plans. All
// methods may be called concurrently. Only Join and Follow block; the others, of
// which Peers is called for requests, use a view that is updated in the
// background.
type Cluster interface {
	// Join publishes this node, and returns when the other nodes are known or ctx
	// ends.
	Join(ctx context.Context) error
	// Leave withdraws everything published, within a few seconds. No method is
	// called after it.
	Leave()

	// Follow maintains a view of which nodes hold a version until Forget. It
	// returns when there is a view or ctx ends.
	Follow(ctx context.Context, db, version string)
	Forget(db, version string)

	// SetPlan sets the plan by which this node holds, or will load, a version
	// (see store.Manifest.PlanHash), and divides the version unless it already
	// is divided by that plan. held reports for each partition whether this node
	// holds it. From then on replicas by other plans are neither Peers nor
	// counted, and partitions advertised by another plan are withdrawn.
	SetPlan(db, version, plan string, held []bool)

	// Refute publishes that this node has found a record that a partitioner would
	// not have put in its file, so that the version is not partitioned by it. It
	// stays published until Forget.
	Refute(db, version, partitioner string)
	// Refuted returns the partitioners that any node, including this one, has
	// refuted, sorted. The names are not validated.
	Refuted(db, version string) []string

	// Owned returns the partitions of a version that this node has to hold,
	// ascending. held reports for each partition whether this node holds it.
	// After SetPlan the result only changes together with Changes; before, it is
	// what SetPlan would result in now.
	Owned(db, version string, held []bool) []int

	// Peers returns the addresses (host:port) of the other nodes known to hold a
	// partition by the same plan. The result is read-only.
	Peers(db, version string, partition int) []string

	// Replicas returns how many other nodes advertise a partition by the plan of
	// SetPlan, or by any plan if none is set. There may be more Peers: nodes that
	// cannot advertise at the moment.
	Replicas(db, version string, partition int) int

	// OtherPlans returns the plans other than that of SetPlan by which nodes say
	// that they hold partitions of a version, sorted. Without SetPlan there are
	// none.
	OtherPlans(db, version string) []string

	// Advertise tells the others that this node holds a partition. Withdraw
	// takes that back, for all partitions of a version if none is named.
	Advertise(db, version string, partition int)
	Withdraw(db, version string, partitions ...int)

	// Missing returns the partitions of a version that have fewer than
	// minReplication replicas, ascending. held reports for each partition whether
	// this node holds it, which counts as one replica.
	Missing(db, version string, held []bool, minReplication int) []int

	// Surplus returns the partitions that this node holds but no longer owns, and
	// that all their owners hold.
	Surplus(db, version string, held []bool) []int

	// Switched tells that this node has switched to a version. Until then, and until
	// each partition has enough replicas, the version is divided again whenever the
	// members change; after that, only to replace what is missing for long.
	Switched(db, version string)

	// Knows reports whether any node holds partitions of a db.
	Knows(db string) bool

	// Linger returns how long a replaced version stays after the last request for
	// it, given the configured time. A cluster may need longer, for nodes that
	// switch later.
	Linger(configured time.Duration) time.Duration

	// Changes receives a value when a result of these methods may have changed;
	// nil if they never change.
	Changes() <-chan struct{}
}

// Solo is a cluster of one node: it holds every partition, has no peers, and no
// node requests a version that it has replaced.
type Solo struct{}

var _ Cluster = Solo{}

// Join returns at once.
func (Solo) Join(context.Context) error { return nil }

// Leave does nothing.
func (Solo) Leave() {}

// Follow returns at once.
func (Solo) Follow(ctx context.Context, db, version string) {}

// Forget does nothing.
func (Solo) Forget(db, version string) {}

// SetPlan does nothing.
func (Solo) SetPlan(db, version, plan string, held []bool) {}

// Refute does nothing.
func (Solo) Refute(db, version, partitioner string) {}

// Refuted returns nil.
func (Solo) Refuted(db, version string) []string { return nil }

// Owned returns all partitions.
func (Solo) Owned(db, version string, held []bool) []int {
	all := make([]int, len(held))
	for p := range all {
		all[p] = p
	}
	return all
}

// Peers returns nil.
func (Solo) Peers(db, version string, partition int) []string { return nil }

// Replicas returns 0.
func (Solo) Replicas(db, version string, partition int) int { return 0 }

// OtherPlans returns none.
func (Solo) OtherPlans(db, version string) []string { return nil }

// Advertise does nothing.
func (Solo) Advertise(db, version string, partition int) {}

// Withdraw does nothing.
func (Solo) Withdraw(db, version string, partitions ...int) {}

// Missing returns the partitions that are not held. It ignores minReplication, as
// there cannot be more than one replica.
func (Solo) Missing(db, version string, held []bool, minReplication int) []int {
	var missing []int
	for p, h := range held {
		if !h {
			missing = append(missing, p)
		}
	}
	return missing
}

// Surplus returns nil.
func (Solo) Surplus(db, version string, held []bool) []int { return nil }

// Switched does nothing.
func (Solo) Switched(db, version string) {}

// Knows returns false.
func (Solo) Knows(string) bool { return false }

// Linger returns 0.
func (Solo) Linger(time.Duration) time.Duration { return 0 }

// Changes returns nil.
func (Solo) Changes() <-chan struct{} { return nil }
