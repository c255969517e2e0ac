package statuspage

import (
	"fmt"
	"testing"

	"sequins/observe/status"
	"sequins/test/expect"
)

// BenchmarkRender renders the page of a cluster of 200 dbs and 30 nodes, and that of one of its dbs, with 1,000 partitions.
func BenchmarkRender(b *testing.B) {
	st := status.Status{Node: "n0", DBs: map[string]status.DB{}, Peers: map[string]status.Peer{}}
	for i := range 30 {
		st.Peers[fmt.Sprintf("n%d", i)] = status.Peer{Health: "Serving 200 databases.", Level: status.LevelGood}
	}
	delete(st.Peers, "n0")
	for i := range 200 {
		v := status.Version{NumPartitions: 1000, TargetReplication: 3, Nodes: map[string]status.OnNode{}}
		for n := range 30 {
			on := status.OnNode{State: status.Active, Current: true}
			for p := range 1000 {
				if (p*3+30-n)%30 < 3 {
					on.Partitions = append(on.Partitions, p)
				}
			}
			v.Nodes[fmt.Sprintf("n%d", n)] = on
		}
		st.DBs[fmt.Sprintf("db%d", i)] = status.DB{Versions: map[string]status.Version{"2026-01-31": v}}
	}
	st.Complete(true, "")
	for _, only := range []string{"", "db7"} {
		b.Run("only="+only, func(b *testing.B) {
			for b.Loop() {
				page, err := Render(st, only, pageTime)
				expect.NoError(b, err)
				b.ReportMetric(float64(len(page)), "bytes")
			}
		})
	}
}
