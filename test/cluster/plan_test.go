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
		Moves      []struct {
			Partition int      `json:"partition"`
			From      []string `json:"from"`
			To        []string `json:"to"`
		} `json:"moves"`
	} `json:"databases"`
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
	want := map[int]map[string]bool{} // shard ids by partition: whether they have come
	mark := func(these, others map[string][]int, come bool) {
		for id, held := range these {
			for _, p := range held {
				if want[p] == nil {
					want[p] = map[string]bool{}
				}
				if !slices.Contains(others[id], p) {
					want[p][id] = come
				}
			}
		}
	}
	mark(before, after, false)
	mark(after, before, true)
	moved := 0
	for _, m := range d.Moves {
		for _, id := range m.To {
			if come, found := want[m.Partition][id]; !come || !found {
				t.Errorf("partition %d has not come to %s", m.Partition, id)
			}
			moved++
		}
		for _, id := range m.From {
			if come, found := want[m.Partition][id]; come || !found {
				t.Errorf("partition %d has not left %s", m.Partition, id)
			}
		}
		if len(m.To)+len(m.From) != len(want[m.Partition]) {
			t.Errorf("partition %d moves from %v to %v, and not as %v", m.Partition, m.From, m.To, want[m.Partition])
		}
		delete(want, m.Partition)
	}
	for p, shards := range want {
		if len(shards) > 0 {
			t.Errorf("partition %d has moved: %v", p, shards)
		}
	}
	if moved != d.Moved || moved == 0 {
		t.Errorf("%d moves, and %d are counted", moved, d.Moved)
	}
}
