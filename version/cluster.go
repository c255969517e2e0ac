package version

import "time"

// Cluster is what a node knows of the others. Every method answers from a view
// that is kept up to date elsewhere and never blocks. All of them may be called
// from several goroutines at a time.
type Cluster interface {
	// Owned returns the partitions of a version that this node has to hold, in
	// ascending order.
	Owned(db, version string, partitions int) []int

	// Peers returns the addresses (host:port) of the other nodes that hold a
	// partition. The result is not to be changed.
	Peers(db, version string, partition int) []string

	// Advertise tells the others that this node holds a partition. Withdraw
	// takes that back for all partitions of a version.
	Advertise(db, version string, partition int)
	Withdraw(db, version string)

	// Missing returns the partitions of a version that have fewer than
	// minReplication replicas, in ascending order. held says of each partition
	// of the version whether this node holds it, which counts for one.
	Missing(db, version string, held []bool, minReplication int) []int

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

// Owned returns all partitions.
func (Solo) Owned(db, version string, partitions int) []int {
	all := make([]int, partitions)
	for p := range all {
		all[p] = p
	}
	return all
}

// Peers returns none.
func (Solo) Peers(db, version string, partition int) []string { return nil }

// Advertise does nothing: there is nobody to be told.
func (Solo) Advertise(db, version string, partition int) {}

// Withdraw does nothing.
func (Solo) Withdraw(db, version string) {}

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

// Linger returns 0.
func (Solo) Linger(time.Duration) time.Duration { return 0 }

// Changes returns nil.
func (Solo) Changes() <-chan struct{} { return nil }
