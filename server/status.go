package server

import (
	"time"
)

// State is what the status JSON says of a version on one node. The four values
// are those of the first sequins, because monitoring reads them.
type State string

const (
	// StateBuilding: being loaded, or loaded and waiting for enough replicas.
	StateBuilding State = "BUILDING"
	// StateActive: clients are (or were until the next one took over) answered from it.
	StateActive State = "ACTIVE"
	// StateRemoving: superseded; it goes when its last request and its time are over.
	StateRemoving State = "REMOVING"
	// StateError: could not be loaded; NodeStatus.Error says why.
	StateError State = "ERROR"
)

// Status is the answer to GET /: everything this node knows. The fields up to
// ShardID have the names and the shape of the first sequins; the others are new.
type Status struct {
	DBs     map[string]DBStatus `json:"dbs"`
	ShardID string              `json:"shard_id"`

	// Node is the key of this node in VersionStatus.Nodes ("localhost" on a
	// single one); GET /healthz takes its entries from there.
	Node string `json:"node,omitempty"`
	// Build names the running program's version.
	Build string `json:"build,omitempty"`
	// StartedAt is when this node started.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Healthy: every db is served from a current version that enough nodes hold
	// every partition of, no version has failed, and the source can be read.
	// The server fills it in.
	Healthy bool `json:"healthy"`
	// Health says the same in a line for people, and if not, what is wrong.
	Health string `json:"health"`
	// Level sums it up for a colour: good, warn or bad. The server fills it in.
	Level string `json:"level"`
	// Draining: the node is shutting down. The server fills it in.
	Draining bool `json:"draining,omitempty"`
	// Source is what a person would type to see the source.
	Source string `json:"source,omitempty"`
	// SourceError is why the databases of the source could not be listed, "" if
	// they could. Of one database it is DBStatus.Error.
	SourceError string `json:"source_error,omitempty"`
	// SourceErrorSince is when that began.
	SourceErrorSince time.Time `json:"source_error_since,omitzero"`
	// RefreshedAt is the last time the source was listed without an error.
	RefreshedAt time.Time `json:"refreshed_at,omitzero"`
	// Warnings are things in the source that are left out, one sentence each.
	Warnings []string `json:"warnings,omitempty"`

	// Disk is where this node's blocks are; zero where it cannot be looked at.
	Disk Disk `json:"disk,omitzero"`

	// Role is node, or router for one that holds nothing; "" on a single one.
	Role string `json:"role,omitempty"`
	// Zone is where this node stands.
	Zone string `json:"zone,omitempty"`
	// ZooKeeper is how the connection to it is; nil where there is none.
	ZooKeeper *ZooKeeper `json:"zookeeper,omitempty"`
	// Problems keep the nodes from being one cluster, one sentence each.
	Problems []string `json:"problems,omitempty"`
	// Peers are the other nodes, by address. The server fills it in.
	Peers map[string]Peer `json:"peers,omitempty"`
}

// Disk is the file system of a node's local store, in bytes.
type Disk struct {
	Bytes int64 `json:"bytes"`      // all of it
	Free  int64 `json:"bytes_free"` // that sequins could still write
	// Blocks are those of the blocks in use, of all versions. The server fills
	// it in.
	Blocks int64 `json:"bytes_blocks"`
	// Low: less than a tenth is free. The server fills it in.
	Low bool `json:"low,omitempty"`
}

// stored is how much of the disk the blocks of a node take.
func (st *Status) stored() (bytes int64) {
	for _, db := range st.DBs {
		for _, v := range db.Versions {
			bytes += v.Nodes[st.Node].Bytes
		}
	}
	return bytes
}

// ZooKeeper is how a node's connection to ZooKeeper is.
type ZooKeeper struct {
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"` // of Connected's value
	Error     string    `json:"error,omitempty"`
	// Published are the znodes that stand as they should, Pending those that
	// do not yet.
	Published int `json:"published"`
	Pending   int `json:"pending"`
}

// DBStatus is the answer to GET /<db>.
type DBStatus struct {
	Versions map[string]VersionStatus `json:"versions"`

	// Error is a trouble of the db as a whole, e.g. that it has no
	// versions, or that they cannot be listed.
	Error string `json:"error,omitempty"`
}

// VersionStatus is one version of a db over all the nodes that are known to
// have it. The catalog fills in Path, NumPartitions, TargetReplication and
// Nodes; the counts are the server's (see count).
type VersionStatus struct {
	Path                      string                `json:"path"`
	NumPartitions             int                   `json:"num_partitions"`
	TargetReplication         int                   `json:"target_replication"`
	ReplicationHistogram      map[int]int           `json:"replication_histogram"`
	AverageReplication        float64               `json:"average_replication"`
	MissingPartitions         int                   `json:"missing_partitions"`
	UnderreplicatedPartitions int                   `json:"underreplicated_partitions"`
	OverreplicatedPartitions  int                   `json:"overreplicated_partitions"`
	Nodes                     map[string]NodeStatus `json:"nodes"`

	// Replicas is how many nodes hold each partition, where the catalog knows
	// that better than from Nodes.
	Replicas []int `json:"-"`
}

// NodeStatus is one version on one node. ActiveAt is there even when it is
// zero (year 1), as it always was.
type NodeStatus struct {
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"created_at"`
	ActiveAt   time.Time `json:"active_at"`
	Current    bool      `json:"current"`
	State      State     `json:"state"`
	Partitions []int     `json:"partitions"`
	ShardID    string    `json:"shard_id"`

	// Error is why the version is in StateError, or what is wrong with it where
	// Diverged is set.
	Error string `json:"error,omitempty"`
	// Diverged: the version is active, and its files in the source are not those it
	// was loaded from, while other nodes hold it by what they are now.
	Diverged bool `json:"diverged,omitempty"`
	// Detail says in a few words what State leaves out, e.g. "prepared,
	// waiting for other nodes to hold 2 partitions: 4, 7".
	Detail string `json:"detail,omitempty"`
	// LastModified is the newest modification time of the version's files.
	LastModified time.Time `json:"last_modified,omitzero"`
	// Partitioner is the function that the version's files are cut along.
	Partitioner string `json:"partitioner,omitempty"`
	// Records and Bytes are those of the local blocks: records, bytes on disk.
	Records int64 `json:"records,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Progress is that of a load, while there is one.
	Progress *Progress `json:"progress,omitempty"`
}

// Progress is how far a load has come.
type Progress struct {
	Files            int       `json:"files"`
	FilesDone        int       `json:"files_done"`
	Bytes            int64     `json:"bytes"`
	BytesDone        int64     `json:"bytes_done"`
	Records          int64     `json:"records"`
	RecordsPerSecond float64   `json:"records_per_second"`
	BytesPerSecond   float64   `json:"bytes_per_second"`
	Partitions       int       `json:"partitions"`
	PartitionsDone   int       `json:"partitions_done"`
	StartedAt        time.Time `json:"started_at,omitzero"`
	// ETA is when the load will be done at the speed so far; absent until there is one.
	ETA time.Time `json:"eta,omitzero"`
}

// replicas returns how many nodes hold each partition that a node holds. Without
// Replicas a node counts where it holds a partition's block, whatever the version's
// state there, except StateError. It costs no more than what nodes have listed: the
// number of partitions may be that of a peer which exaggerates.
func (v *VersionStatus) replicas() map[int]int {
	replicas := make(map[int]int)
	if len(v.Replicas) == v.NumPartitions {
		for p, n := range v.Replicas {
			if n > 0 {
				replicas[p] = n
			}
		}
		return replicas
	}
	for _, n := range v.Nodes {
		if n.State == StateError {
			continue
		}
		for _, p := range n.Partitions {
			if p >= 0 && p < v.NumPartitions {
				replicas[p]++
			}
		}
	}
	return replicas
}

// count works out how well the partitions are replicated.
func (v *VersionStatus) count() {
	replicas := v.replicas()
	v.ReplicationHistogram = make(map[int]int)
	v.MissingPartitions, v.UnderreplicatedPartitions, v.OverreplicatedPartitions = v.NumPartitions-len(replicas), 0, 0
	if v.MissingPartitions > 0 {
		v.ReplicationHistogram[0] = v.MissingPartitions
	}
	total := 0
	for _, n := range replicas {
		total += n
		v.ReplicationHistogram[n]++
		switch {
		case n < v.TargetReplication:
			v.UnderreplicatedPartitions++
		case n > v.TargetReplication:
			v.OverreplicatedPartitions++
		}
	}
	v.AverageReplication = 0
	if v.NumPartitions > 0 {
		v.AverageReplication = float64(total) / float64(v.NumPartitions)
	}
}
