//go:build integration

package cluster

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"sequins/test/process"
)

// forecast is what sequins plan prints as JSON, as far as tests look at it.
type forecast struct {
	Databases []struct {
		Partitions int   `json:"partitions"`
		Bytes      int64 `json:"bytes"`
		Moved      int   `json:"moved"`
	} `json:"databases"`
	Shards []struct {
		ShardID string `json:"shard_id"`
		Before  struct {
			Partitions int `json:"partitions"`
		} `json:"before"`
		After struct {
			Partitions int `json:"partitions"`
		} `json:"after"`
	} `json:"shards"`
	Hints []string `json:"hints"`
}

// plan runs sequins plan.
func (m *member) plan(t testing.TB, args ...string) (f forecast) {
	t.Helper()
	out, err := exec.Command(process.Binary(t), append([]string{"plan", "--json", "--server", m.addr()}, args...)...).Output()
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil || len(f.Databases) != 1 {
		t.Fatalf("sequins plan of %s: %v: %s", m.name, err, out)
	}
	return f
}

// check holds a forecast against what the members held of the database before and after the change.
func (f forecast) check(t testing.TB, before, after map[string][]int) {
	t.Helper()
	d := f.Databases[0]
	if d.Bytes == 0 || len(f.Hints) > 0 {
		t.Errorf("%d bytes, hints %q", d.Bytes, f.Hints)
	}
	moved := 0
	for _, s := range f.Shards {
		if s.Before.Partitions != len(before[s.ShardID]) || s.After.Partitions != len(after[s.ShardID]) {
			t.Errorf("%+v, and the nodes have held %v before and %v after the change", s, before[s.ShardID], after[s.ShardID])
		}
		for _, p := range after[s.ShardID] {
			if !slices.Contains(before[s.ShardID], p) {
				moved++
			}
		}
	}
	if moved != d.Moved || moved == 0 {
		t.Errorf("%d moves, and %d are counted", moved, d.Moved)
	}
}
