//go:build integration

package cluster

import (
	"bytes"
	"testing"

	"sequins/version"
	"sequins/zk"
)

// What a node reports of a version reaches the others by the same plan, until it reports something else, stops, leaves or
// is lost. The directories go with the last one.
func testReports(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, lose := f.node("a")
	b, _ := f.node("b")
	f.join(a, b)
	follow := func(c *Cluster, id, plan string) version.Following {
		v := c.Follow(t.Context(), "db", id)
		v.SetPlan(plan, make([]bool, 2))
		return v
	}
	onA, onB := follow(a, "1", "p1"), follow(b, "1", "p1")
	seen := func(v version.Following, from, want string) func() bool {
		return func() bool {
			all, known := v.Reports()
			data, found := all[from]
			return known && found == (want != "") && string(data) == want
		}
	}
	f.eventually("nothing is known of a new version", seen(onB, "a:1", ""))
	onA.Report([]byte("one"))
	f.eventually("a report arrives", seen(onB, "a:1", "one"))
	if all, known := onA.Reports(); !known && len(all) > 0 || all["a:1"] != nil {
		t.Errorf("a node sees its own report: %q", all)
	}
	before, _ := onB.Reports()
	onB.Report([]byte("of b"))
	f.eventually("the report of the other node", seen(onA, "b:1", "of b"))
	if after, _ := onB.Reports(); !bytes.Equal(after["a:1"], before["a:1"]) || &after["a:1"][0] != &before["a:1"][0] {
		t.Error("a report that has not changed has other memory")
	}
	onA.Report([]byte("two"))
	f.eventually("another report", seen(onB, "a:1", "two"))

	revised := follow(b, version.Revise("1"), "p2")
	f.eventually("reports by another plan are those of another revision", seen(revised, "a:1", ""))
	onA.SetPlan("p2", make([]bool, 2))
	f.eventually("a report follows the plan", seen(revised, "a:1", "two"))
	f.eventually("and leaves the old one", seen(onB, "a:1", ""))
	onA.SetPlan("p1", make([]bool, 2))
	f.eventually("it is back", seen(onB, "a:1", "two"))

	onA.Report(nil)
	f.eventually("a report is withdrawn", seen(onB, "a:1", ""))
	onA.Report([]byte("three"))
	f.eventually("it is there again", seen(onB, "a:1", "three"))
	lose()
	f.eventually("the report of a lost node is gone", seen(onB, "a:1", ""))
	revised.Stop()
	onB.Stop()
	gates := b.o.Session.Watch(zk.GatesDir, false)
	defer gates.Stop()
	f.eventually("the directory is gone", func() bool {
		select {
		case <-gates.Seen():
			return len(gates.Entries()) == 0
		default:
			return false
		}
	})
}
