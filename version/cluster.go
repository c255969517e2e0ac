package version

import (
	"context"

	"sequins/internal/content"
	"sequins/version/report"
)

// Cluster is what a node knows of the other nodes, and publishes to them. All methods may be called concurrently. Only Join and Follow block.
type Cluster interface {
	// Join publishes this node, and returns when the other nodes are known or ctx ends. If that takes long as nothing can be known of other nodes, it calls
	// away once, with the addresses of those that this node may ask, as it knew them before a restart; an error of away is Join's. From then on until it returns, this node
	// is away: every Following has the Peers that were known, no Replicas, and owns nothing, and Follow does not wait.
	Join(ctx context.Context, away func(members []string) error) error
	// Leave withdraws everything published, within a few seconds. Nothing is published after it, and every Following keeps its last view.
	Leave()

	// Follow follows an input until Stop, and returns when its replicas are known or ctx ends. Following a followed input returns the same Following.
	Follow(ctx context.Context, db string, in content.Input) Following

	// Mixed reports whether a member of the cluster is of upstream's kind: its znodes do not say which content of a version it holds.
	Mixed() bool

	// Knows reports whether any node holds partitions of a db.
	Knows(db string) bool

	// Changes receives the names of the databases for which a result of these methods except Knows, or of those of a Following, may have changed; ""
	// stands for all of them. It is nil if nothing ever changes.
	Changes() <-chan map[string]bool
}

// Following is what a node knows of the replicas of one input on other nodes, and publishes of its own. All methods may be called concurrently. None
// blocks: they use a view that is updated in the background. Those that return something change nothing. In several of them, held reports for each
// partition whether this node holds it.
type Following interface {
	// SetDivision sets the division by which this node holds, or will load, the input, and assigns its partitions to the members unless they already
	// are assigned for that division. From then on only replicas of this content, and those of upstream's nodes, are Peers and counted. Partitions
	// that were advertised by another division are withdrawn, and the report is, too.
	SetDivision(division string, partitions int)

	// Elsewhere returns the contents of the version's name, of any input, that other nodes advertise or report, with the addresses (host:port) of
	// these nodes, sorted. The result is read-only.
	Elsewhere() map[content.Content][]string

	// Owned returns the partitions that this node has to hold, ascending. After SetDivision the result only changes together with Changes; before, it
	// is what SetDivision would result in now.
	Owned(partitions int) []int

	// Owners returns the addresses (host:port) of the nodes, including this one, that have to hold each partition, and that are members now. self is
	// this node's address. There are none before SetDivision, and without other nodes.
	Owners() (byPartition [][]string, self string)

	// Peers returns the addresses (host:port) of the other nodes known to hold a
	// partition of the content. The result is read-only. It is called for requests.
	Peers(partition int) []string

	// Replicas returns how many other nodes advertise a partition of the content, or of any division if none is set. There may be more Peers: nodes
	// that cannot advertise at the moment.
	Replicas(partition int) int

	// Advertise publishes that this node serves a partition. Withdraw takes that back, for all partitions if none is named.
	Advertise(partition int)
	Withdraw(partitions ...int)

	// Surplus returns the partitions that this node holds but no longer owns, and that all their owners hold.
	Surplus(held []bool) []int

	// Switched records that this node has switched to the content. Until then, and until each partition has enough replicas, the partitions are
	// assigned again whenever the members change; after that, only to replace what is missing for long.
	Switched()

	// Report publishes what this node reports of the content (see report.Report.Encode). data must not be modified later.
	Report(data []byte)
	// Reports returns what the other nodes report of the content, by their address, and whether that is known: not before ZooKeeper has been read.
	// The result is read-only.
	Reports() (reports map[string]report.Report, known bool)

	// Stop withdraws everything published of the input. The view is not updated after it, and nothing is published.
	Stop()
}

// Missing returns the partitions that have fewer than minReplication replicas, including that of this node, ascending.
func Missing(f Following, held []bool, minReplication int) (missing []int) {
	for p, here := range held {
		n := f.Replicas(p)
		if here {
			n++
		}
		if n < minReplication {
			missing = append(missing, p)
		}
	}
	return missing
}

// IsWhole reports whether every partition is on this node, or on one that may be asked.
func IsWhole(f Following, held []bool) bool {
	for p, here := range held {
		if !here && len(f.Peers(p)) == 0 {
			return false
		}
	}
	return true
}

// IsReadable reports whether at least one partition can be read, here or from a peer.
func IsReadable(f Following, held []bool) bool {
	for p, here := range held {
		if here || f.Replicas(p) > 0 {
			return true
		}
	}
	return false
}

// Solo is a cluster of one node, and the Following of each of its versions: it holds every partition, has no peers, and no node requests a version
// that it has replaced.
type Solo struct{ nobody }

var (
	_ Cluster   = Solo{}
	_ Following = Solo{}
)

// nobody is what there is of other nodes if there are none.
type nobody struct{}

func (nobody) Join(context.Context, func([]string) error) error        { return nil }
func (nobody) Leave()                                                  {}
func (nobody) Follow(context.Context, string, content.Input) Following { return Solo{} }
func (nobody) Mixed() bool                                             { return false }
func (nobody) Knows(string) bool                                       { return false }
func (nobody) Changes() <-chan map[string]bool                         { return nil }
func (nobody) SetDivision(string, int)                                 {}
func (nobody) Elsewhere() map[content.Content][]string                 { return nil }
func (nobody) Owners() (byPartition [][]string, self string)           { return nil, "" }
func (nobody) Peers(int) []string                                      { return nil }
func (nobody) Replicas(int) int                                        { return 0 }
func (nobody) Advertise(int)                                           {}
func (nobody) Withdraw(...int)                                         {}
func (nobody) Surplus([]bool) []int                                    { return nil }
func (nobody) Switched()                                               {}
func (nobody) Report([]byte)                                           {}
func (nobody) Reports() (reports map[string]report.Report, known bool) { return nil, true }
func (nobody) Stop()                                                   {}

// Owned returns all partitions.
func (Solo) Owned(partitions int) []int { return Missing(Solo{}, make([]bool, partitions), 1) }
