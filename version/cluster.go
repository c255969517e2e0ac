package version

import (
	"context"
	"time"
)

// Cluster is what a node knows of the others, and what it tells them. Peers is
// on the way of requests; it and all the others but Join and Follow answer from
// a view that is kept up to date elsewhere, and never wait. All of them may be
// called from several goroutines at a time.
type Cluster interface {
	// Join makes the node known to the others, and returns when it knows them,
	// or when ctx ends.
	Join(ctx context.Context) error
	// Leave takes back all that has been told, within a few seconds. Nothing
	// is called after it.
	Leave()

	// Follow begins to keep a view of who holds what of a version, and returns
	// when there is one, or when ctx ends. It goes on until Forget.
	Follow(ctx context.Context, db, version string)
	Forget(db, version string)

	// SetPlan tells by which plan this node holds, or is going to hold, a
	// version (see blocks.Manifest.PlanHash), and divides the version if it is
	// not divided so yet. held reports of each partition of the version whether
	// this node holds it. From then on replicas of other plans are neither
	// Peers nor counted, and what was advertised by another plan is withdrawn.
	SetPlan(db, version, plan string, held []bool)

	// Refute tells the others that this node has found a record that a
	// partitioner would not have put where it is, so that the version is not
	// partitioned by it. It stays told until Forget.
	Refute(db, version, partitioner string)
	// Refuted returns what any node has told so, this one among them, sorted.
	// The names may be anything.
	Refuted(db, version string) []string

	// Owned returns the partitions of a version that this node has to hold, in
	// ascending order. held says of each partition of the version whether this
	// node holds it. After SetPlan the answer stays the same unless Changes
	// says otherwise; before, it is what SetPlan would arrive at now.
	Owned(db, version string, held []bool) []int

	// Peers returns the addresses (host:port) of the other nodes that hold a
	// partition by the same plan, as far as is known. The result is not to be changed.
	Peers(db, version string, partition int) []string

	// Replicas returns how many other nodes say that they hold a partition, by
	// the plan of SetPlan, or by any as long as none was set.
	// There may be more Peers: some may be unable to say so just now.
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
	// minReplication replicas, in ascending order. held says of each partition
	// of the version whether this node holds it, which counts for one.
	Missing(db, version string, held []bool, minReplication int) []int

	// Surplus returns the partitions that this node holds and need not hold
	// any more, since all those that have to do.
	Surplus(db, version string, held []bool) []int

	// Knows reports whether any node has told that it holds something of a db.
	Knows(db string) bool

	// Linger returns how long a version that has been replaced has to stay
	// after the last request for it, for the sake of nodes that have not
	// switched yet. configured is what the configuration says.
	Linger(configured time.Duration) time.Duration

	// Changes gets a value when any of this may have changed; nil if it never
	// does.
	Changes() <-chan struct{}
}

// Solo is a cluster of one: it holds every partition, has no peers, and what
// it has replaced nobody will ask for.
type Solo struct{}

var _ Cluster = Solo{}

// Join returns at once: there is nobody to be met.
func (Solo) Join(context.Context) error { return nil }

// Leave does nothing: there is nobody to be told.
func (Solo) Leave() {}

// Follow returns at once.
func (Solo) Follow(ctx context.Context, db, version string) {}

// Forget does nothing.
func (Solo) Forget(db, version string) {}

// SetPlan does nothing.
func (Solo) SetPlan(db, version, plan string, held []bool) {}

// Refute does nothing.
func (Solo) Refute(db, version, partitioner string) {}

// Refuted returns none.
func (Solo) Refuted(db, version string) []string { return nil }

// Owned returns all partitions.
func (Solo) Owned(db, version string, held []bool) []int {
	all := make([]int, len(held))
	for p := range all {
		all[p] = p
	}
	return all
}

// Peers returns none.
func (Solo) Peers(db, version string, partition int) []string { return nil }

// Replicas returns 0.
func (Solo) Replicas(db, version string, partition int) int { return 0 }

// OtherPlans returns none.
func (Solo) OtherPlans(db, version string) []string { return nil }

// Advertise does nothing.
func (Solo) Advertise(db, version string, partition int) {}

// Withdraw does nothing.
func (Solo) Withdraw(db, version string, partitions ...int) {}

// Missing returns the partitions that are not held. One replica is all there
// can be, whatever minReplication asks for.
func (Solo) Missing(db, version string, held []bool, minReplication int) []int {
	var missing []int
	for p, h := range held {
		if !h {
			missing = append(missing, p)
		}
	}
	return missing
}

// Surplus returns none.
func (Solo) Surplus(db, version string, held []bool) []int { return nil }

// Knows returns false.
func (Solo) Knows(string) bool { return false }

// Linger returns 0.
func (Solo) Linger(time.Duration) time.Duration { return 0 }

// Changes returns nil.
func (Solo) Changes() <-chan struct{} { return nil }
