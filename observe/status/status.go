// Package status is the one model of what a node and its cluster know: the databases, their versions and the
// nodes that hold them, with the health that follows from it. The node fills it in, Merge adds what other nodes
// say, and Complete computes the rest. The JSON of GET / and GET /<db>, the pages, the metrics and the command
// line all show it.
package status

import (
	"strings"
	"time"

	"sequins/shard"
	"sequins/version/pin"
)

// State is the state of a version on one node in the status JSON. The values are those of the original
// sequins, which monitoring systems read.
type State string

const (
	// Available: in the source, and its load waits for a time at which it may begin; OnNode.Detail is which.
	Available State = "AVAILABLE"
	// Building: loading, or loaded and waiting for enough replicas.
	Building State = "BUILDING"
	// Active: served to clients, or was until the next version replaced it.
	Active State = "ACTIVE"
	// Held: loaded, and kept from being served by the rules of the gate; OnNode.Detail is the reason.
	Held State = "HELD"
	// Kept: superseded, and kept on the disk and open for a rollback.
	Kept State = "KEPT"
	// Removing: superseded; it is removed after its last request and version_remove_timeout.
	Removing State = "REMOVING"
	// Error: failed to load; OnNode.Error is the reason.
	Error State = "ERROR"
)

// Status is the answer to GET /. The names and types of DBs and ShardID are those of the original sequins.
type Status struct {
	DBs     map[string]DB `json:"dbs"`
	ShardID string        `json:"shard_id"`

	// Node is the key of this node in Version.Nodes ("localhost" on a single node). GET /healthz takes
	// its entries from there.
	Node string `json:"node,omitempty"`
	// Build is the version of the program.
	Build string `json:"build,omitempty"`
	// StartedAt is when this node started.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Healthy reports whether every db is served from a current version with enough replicas of every
	// partition, no version has failed, and the source is readable. Complete sets it.
	Healthy bool `json:"healthy"`
	// Health is a line of text that describes the health, with the reason if it is not good. Complete sets it.
	Health string `json:"health"`
	// Level is the health as LevelGood, LevelWarn or LevelBad. Complete sets it.
	Level string `json:"level"`
	// Runbook is the section of the runbook on the health, "" if it is good. Complete sets it.
	Runbook string `json:"-"`
	// Draining reports whether the node is shutting down.
	Draining bool `json:"draining,omitempty"`
	// Source is the URL or path of the source.
	Source string `json:"source,omitempty"`
	// SourceError is the reason why the databases of the source could not be listed, or "". Errors of a
	// single database are in DB.Error.
	SourceError string `json:"source_error,omitempty"`
	// SourceErrorSince is when SourceError first occurred.
	SourceErrorSince time.Time `json:"source_error_since,omitzero"`
	// RefreshedAt is when the source was last listed without an error.
	RefreshedAt time.Time `json:"refreshed_at,omitzero"`
	// ReloadError is why the configuration that was last read again is not in use, or ""; ReloadErrorSince is when that was.
	ReloadError      string    `json:"reload_error,omitempty"`
	ReloadErrorSince time.Time `json:"reload_error_since,omitzero"`
	// RestartKeys are the keys of the configuration whose values, as last read again, are not in use before a restart.
	RestartKeys []string `json:"restart_keys,omitempty"`
	// Certificate is this node's certificate of TLS; zero without TLS.
	Certificate Certificate `json:"certificate,omitzero"`
	// TokensError is why the tokens file as it is now is not in use, or "".
	TokensError string `json:"tokens_error,omitempty"`
	// Waiting is what this node waits for, what keeps it from being ready first.
	Waiting []Wait `json:"waiting,omitempty"`
	// Warnings describe ignored entries of the source, one sentence each.
	Warnings []string `json:"warnings,omitempty"`

	// Disk is the file system of the local store; zero if unknown.
	Disk Disk `json:"disk,omitzero"`

	// Traffic is what clients have asked of this node in the last seconds.
	Traffic Traffic `json:"traffic,omitzero"`

	// Role is node, or router for a node that holds no partitions; "" on a single node.
	Role string `json:"role,omitempty"`
	// Zone is the zone of this node, and Weight its share of the partitions relative to those of other nodes; 0 for a router and on a single node.
	Zone   string  `json:"zone,omitempty"`
	Weight float64 `json:"weight,omitempty"`
	// Assignment is the rule by which partitions are assigned to nodes; "" on a single node.
	Assignment shard.Assignment `json:"assignment,omitempty"`
	// ZooKeeper is the state of the connection to ZooKeeper; nil on a single node.
	ZooKeeper *ZooKeeper `json:"zookeeper,omitempty"`
	// Problems are reasons why the nodes do not form one cluster, one sentence each.
	Problems []string `json:"problems,omitempty"`
	// Differences are the settings that the nodes do not have alike, as this node saw them last.
	Differences []Difference `json:"differences,omitempty"`
	// Settings are those of this node. Only answers to other nodes that ask for them have them.
	Settings Settings `json:"settings,omitempty"`
	// Peers are the other nodes by address; see Merge.
	Peers map[string]Peer `json:"peers,omitempty"`

	// Events are the last events of this node, the newest first. The answer to another node lacks them.
	Events []Event `json:"events,omitempty"`
}

// Certificate is the certificate of a node.
type Certificate struct {
	Expires time.Time `json:"expires"`
	// Error is why the files of certificates as they are now are not in use, or "". The former ones are, and Expires is theirs.
	Error string `json:"error,omitempty"`
}

// Disk is the file system of a node's local store, in bytes.
type Disk struct {
	Bytes int64 `json:"bytes"`      // capacity
	Free  int64 `json:"bytes_free"` // available to sequins
	// Blocks is the size of the blocks in use, of all versions. Complete sets it.
	Blocks int64 `json:"bytes_blocks"`
	// Low reports whether less than a tenth is free. Complete sets it.
	Low bool `json:"low,omitempty"`
}

// Stored returns the size of all blocks of the node, in bytes.
func (st *Status) Stored() (bytes int64) {
	for _, db := range st.DBs {
		for _, v := range db.Versions {
			bytes += v.Nodes[st.Node].Bytes
		}
	}
	return bytes
}

// ZooKeeper is the state of a node's connection to ZooKeeper.
type ZooKeeper struct {
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"` // when Connected changed last
	Error     string    `json:"error,omitempty"`
	// Published is the number of up-to-date znodes, Pending the number of znodes still to write.
	Published int `json:"published"`
	Pending   int `json:"pending"`

	// What follows is only in the metrics: the sessions since the start, the nodes that data is divided among, with this one, and the
	// differences in settings that keep them from forming one cluster.
	Sessions, Nodes, Problems int `json:"-"`
}

// DB is the answer to GET /<db>.
type DB struct {
	Versions map[string]Version `json:"versions"`

	// Error is an error of the db as a whole, e.g. that it has no versions or that they cannot be listed.
	Error string `json:"error,omitempty"`

	// Hints are how the served version is divided badly among the nodes, see Version.Hints. Complete sets them.
	Hints []string `json:"hints,omitempty"`

	// Pin is what people have decided about the versions, without a Version whose time is over; nil if nothing. It is what this node has read
	// last, and Pins are what the other nodes have, by their addresses.
	Pin  *pin.File           `json:"pin,omitempty"`
	Pins map[string]pin.File `json:"pins,omitempty"`

	// Traffic is what clients have asked of the db on this node in the last seconds, and ClusterTraffic on all nodes.
	Traffic        Traffic `json:"traffic,omitzero"`
	ClusterTraffic Traffic `json:"cluster_traffic,omitzero"`

	// Events are the last events of the db on this node, the newest first. Only the answer to GET /<db> has them.
	Events []Event `json:"events,omitempty"`
}

// PinOn returns what a node has read last of the pin of the db. self is the node that has answered.
func (d DB) PinOn(node, self string) pin.File {
	if node == self && d.Pin != nil {
		return *d.Pin
	}
	return d.Pins[node]
}

// Version is the status of one version on all nodes known to have it. The node sets Path, NumPartitions,
// TargetReplication and Nodes; Complete computes the counts.
type Version struct {
	Path                      string            `json:"path"`
	NumPartitions             int               `json:"num_partitions"`
	TargetReplication         int               `json:"target_replication"`
	ReplicationHistogram      map[int]int       `json:"replication_histogram"`
	AverageReplication        float64           `json:"average_replication"`
	MissingPartitions         int               `json:"missing_partitions"`
	UnderreplicatedPartitions int               `json:"underreplicated_partitions"`
	OverreplicatedPartitions  int               `json:"overreplicated_partitions"`
	Nodes                     map[string]OnNode `json:"nodes"`

	// Replicas is the number of nodes that hold each partition, if the node knows more than Nodes.
	Replicas []int `json:"-"`
}

// OnNode is the status of one version on one node. Times that are not known yet are absent: of when it was created, and when it became active.
type OnNode struct {
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	ActiveAt   time.Time `json:"active_at,omitzero"`
	Current    bool      `json:"current"`
	State      State     `json:"state"`
	Partitions []int     `json:"partitions"`
	ShardID    string    `json:"shard_id"`

	// Error is the reason for the state Error, or, if Diverged is set, what is wrong with the version.
	Error string `json:"error,omitempty"`
	// Diverged reports that the version is active and its files in the source, or the options by which they are read, are no longer those
	// that it was loaded from.
	Diverged bool `json:"diverged,omitempty"`
	// Detail adds to State in a few words, e.g. "prepared, waiting for other nodes to hold 2 partitions: 4,
	// 7".
	Detail string `json:"detail,omitempty"`
	// Gate are the results of the rules of the gate, if the version was judged.
	Gate []GateCheck `json:"gate,omitempty"`
	// LastModified is the newest modification time of the version's files.
	LastModified time.Time `json:"last_modified,omitzero"`
	// Content is what its blocks are made from: nodes with different contents of a version do not use each other's blocks.
	Content string `json:"content,omitempty"`
	// Partitioner is the function by which the version's files are partitioned.
	Partitioner string `json:"partitioner,omitempty"`
	// PartitionBytes are the sizes on disk of the blocks of Partitions, in the same order.
	PartitionBytes []int64 `json:"partition_bytes,omitempty"`
	// Records and Bytes are the number of records and the size on disk of the local blocks.
	Records int64 `json:"records,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Unchanged is the number of partitions whose blocks are those of other versions, because their input was the same, since the node
	// has started.
	Unchanged int `json:"unchanged_partitions,omitempty"`
	// Progress is the progress of a running load; nil if there is none.
	Progress *Progress `json:"progress,omitempty"`
}

// Brief returns an error or a detail of a version without what the place that shows it says already: of which version it is, and
// the path of that version.
func (v *Version) Brief(text, name string) string {
	if before, rest, found := strings.Cut(text, "version "+name+" of "); found && !strings.Contains(before, ":") {
		if _, reason, found := strings.Cut(rest, ": "); found {
			text = reason
		}
	}
	if v.Path != "" {
		text = strings.ReplaceAll(text, v.Path+"/", "")
	}
	return text
}

// GateCheck is the result of one rule of the gate.
type GateCheck struct {
	Rule   string  `json:"rule"` // its key in the configuration
	Value  float64 `json:"value"`
	Limit  float64 `json:"limit"`
	Broken bool    `json:"broken"`
	Text   string  `json:"text"` // the figures in words
}

// Progress is the progress of a load.
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
	// ETA is the estimated end of the load at the average speed so far; zero if unknown.
	ETA time.Time `json:"eta,omitzero"`
}

// Holders returns the number of nodes that hold each partition, by partition.
func (v *Version) Holders() []int {
	all := make([]int, max(0, min(v.NumPartitions, shard.MaxPartitions)))
	for p, n := range v.replicas() {
		if p < len(all) {
			all[p] = n
		}
	}
	return all
}

// replicas returns the number of nodes that hold each partition. Without Replicas, a node counts for the
// partitions whose blocks it holds in any state except Error. Its cost depends on the listed partitions
// and not on NumPartitions, which a faulty peer may exaggerate.
func (v *Version) replicas() map[int]int {
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
		if n.State == Error {
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

// Records returns the number of records of a version, exactly if one node holds all partitions.
func (v *Version) Records() (n int64, exact bool) {
	held := 0
	for _, on := range v.Nodes {
		if v.NumPartitions > 0 && len(on.Partitions) == v.NumPartitions {
			return on.Records, true
		}
		held += len(on.Partitions)
		n += on.Records
	}
	if held == 0 {
		return 0, n == 0
	}
	return int64(float64(n) * float64(v.NumPartitions) / float64(held)), false
}

func (v *Version) count() {
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
	v.AverageReplication = float64(total) / float64(max(1, v.NumPartitions)) // without partitions, total is 0
}

// Complete computes the fields that follow from others, of a status that may be merged from several nodes.
// ready reports whether the node is ready, and reason why not, in one line.
func (st *Status) Complete(ready bool, reason string) {
	if st.DBs == nil {
		st.DBs = map[string]DB{}
	}
	shards := len(st.Shards())
	for name, db := range st.DBs {
		if db.Versions == nil {
			db.Versions = map[string]Version{}
		}
		for version, v := range db.Versions {
			v.complete()
			for node, n := range v.Nodes {
				if n.Current && !db.PinOn(node, st.Node).Allows(version) && n.Error == "" {
					n.Error = "it is not allowed by the pin, and served because no other version is ready"
					v.Nodes[node] = n
				}
			}
			db.Versions[version] = v
		}
		served := db.Versions[db.Current(st.Node)]
		db.Hints = served.Hints(name, shards)
		st.DBs[name] = db
	}
	if d := &st.Disk; d.Bytes > 0 {
		d.Blocks, d.Low = st.Stored(), d.Free < d.Bytes/10
	}
	st.health(ready, reason)
	st.Healthy = st.Level == LevelGood
}

// complete computes the counts, and replaces nil by empty for the JSON.
func (v *Version) complete() {
	if v.Nodes == nil {
		v.Nodes = map[string]OnNode{}
	}
	for name, n := range v.Nodes {
		if n.Partitions == nil {
			n.Partitions = []int{}
			v.Nodes[name] = n
		}
	}
	v.count()
}

// OnThisNode returns the versions of each db on this node, and whether one of them is
// active.
func (st *Status) OnThisNode() (dbs map[string]map[string]OnNode, active bool) {
	dbs = make(map[string]map[string]OnNode)
	for name, db := range st.DBs {
		for version, v := range db.Versions {
			n, ok := v.Nodes[st.Node]
			if !ok {
				continue
			}
			if dbs[name] == nil {
				dbs[name] = make(map[string]OnNode)
			}
			dbs[name][version] = n
			if n.State == Active {
				active = true
			}
		}
	}
	return dbs, active
}
