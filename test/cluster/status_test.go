//go:build integration

package cluster

import (
	"encoding/json"
	"strings"
	"testing"
)

// nodeStatus is what GET / says, as far as tests look at it.
type nodeStatus struct {
	DBs       map[string]dbStatus `json:"dbs"`
	Problems  []string            `json:"problems"`
	ZooKeeper struct {
		Connected bool `json:"connected"`
		Pending   int  `json:"pending"`
	} `json:"zookeeper"`
	Peers map[string]struct {
		Error string `json:"error"`
	} `json:"peers"`
}

type dbStatus struct {
	Versions map[string]versionStatus `json:"versions"`
}

type versionStatus struct {
	NumPartitions   int            `json:"num_partitions"`
	Target          int            `json:"target_replication"`
	Histogram       map[string]int `json:"replication_histogram"`
	Missing         int            `json:"missing_partitions"`
	Underreplicated int            `json:"underreplicated_partitions"`
	Nodes           map[string]struct {
		Partitions []int  `json:"partitions"`
		State      string `json:"state"`
		ShardID    string `json:"shard_id"`
	} `json:"nodes"`
}

func (m *member) status(t testing.TB) (s nodeStatus) {
	t.Helper()
	r := m.node.Get(t, "/")
	if err := json.Unmarshal(r.Body, &s); err != nil {
		t.Fatalf("status of %s: %d: %v: %s", m.name, r.Code, err, r.Body)
	}
	return s
}

// hasWords says whether a text holds all of the words.
func hasWords(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
