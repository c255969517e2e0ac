//go:build integration

package cluster

import (
	"testing"

	"sequins/internal/content"
	"sequins/version"
	"sequins/zk"
)

// What a node reports of a content reaches the others that follow it, until it reports something else, stops, leaves or
// is lost. The directories go with the last one.
func testReports(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, lose := f.node("a")
	b, _ := f.node("b")
	f.join(a, b)
	follow := func(c *Cluster, of content.Content) version.Following {
		v := c.Follow(t.Context(), "db", of.Input)
		v.SetDivision(of.Division, 2)
		return v
	}
	onA, onB := follow(a, x), follow(b, x)
	seen := func(v version.Following, from, want string) func() bool {
		return func() bool {
			all, known := v.Reports()
			data, found := all[from]
			return known && found == (want != "") && string(data) == want
		}
	}
	if !seen(onB, "a:1", "")() {
		t.Error("the reports are not known when a version is followed, or there is one")
	}
	onA.Report([]byte("one"))
	f.eventually("a report arrives", seen(onB, "a:1", "one"))
	if all, known := onA.Reports(); !known && len(all) > 0 || all["a:1"] != nil {
		t.Errorf("a node sees its own report: %q", all)
	}
	before, _ := onB.Reports()
	onB.Report([]byte("of b"))
	f.eventually("the report of the other node", seen(onA, "b:1", "of b"))
	onA.Report([]byte("two"))
	f.eventually("another report", seen(onB, "a:1", "two"))
	if string(before["a:1"]) != "one" {
		t.Errorf("a report that was returned has become %q", before["a:1"])
	}

	other, late := follow(b, y), follow(b, content.Content{Input: input("2", "x"), Division: x.Division})
	if !seen(other, "a:1", "")() || !seen(late, "a:1", "")() {
		t.Error("another input has the report")
	}
	onB.SetDivision(redivided.Division, 2)
	if !seen(onB, "a:1", "")() {
		t.Error("another division has the report")
	}
	onA.SetDivision(redivided.Division, 2)
	f.eventually("a report is withdrawn with its division", func() bool { return len(onB.Elsewhere()) == 0 })
	onA.Report([]byte("of another division"))
	f.eventually("it has a new one", seen(onB, "a:1", "of another division"))

	onA.Report(nil)
	f.eventually("a report is withdrawn", seen(onB, "a:1", ""))
	onA.Report([]byte("three"))
	f.eventually("it is there again", seen(onB, "a:1", "three"))
	lose()
	f.eventually("the report of a lost node is gone", seen(onB, "a:1", ""))
	for _, v := range []version.Following{onB, other, late} {
		v.Stop()
	}
	gates := f.names(zk.GatesDir)
	f.eventually("the directory is gone", func() bool { return gates() == "" })
}

// Reports that were returned stay as they are when others come. They are not known before the first.
func TestReportsReplaced(t *testing.T) {
	f := alone(t).follow("db", x.Input)
	f.SetDivision(x.Division, 1)
	of := func(addr, data string) zk.Entry { return zk.Entry{Name: x.Code() + "@" + addr, Data: []byte(data)} }
	if all, known := f.Reports(); known {
		t.Errorf("before there are any, reports %q are known", all)
	}
	f.updateReports([]zk.Entry{of("a:1", "one"), of("b:1", "two")})
	before, _ := f.Reports()
	f.updateReports([]zk.Entry{of("a:1", "one"), of("b:1", "three"), of("c:1", "four")})
	after, _ := f.Reports()
	if string(before["b:1"]) != "two" || string(after["b:1"]) != "three" || len(before) != 2 || len(after) != 3 {
		t.Errorf("reports %q and %q", before, after)
	}
}
