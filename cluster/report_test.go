//go:build integration

package cluster

import (
	"testing"

	"sequins/internal/content"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version"
	"sequins/version/report"
	"sequins/zk"
)

// encoded is a report by rules, which are told from other ones by their name.
func encoded(t testing.TB, rules string) []byte {
	t.Helper()
	data, err := report.Report{Rules: rules, Finding: store.Finding{State: store.Passed}}.Encode()
	expect.NoError(t, err)
	return data
}

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
			r, found := all[from]
			return known && found == (want != "") && r.Rules == want
		}
	}
	if !seen(onB, "a:1", "")() {
		t.Error("the reports are not known when a version is followed, or there is one")
	}
	onA.Report(encoded(t, "one"))
	f.eventually("a report arrives", seen(onB, "a:1", "one"))
	if all, known := onA.Reports(); !known && len(all) > 0 || all["a:1"].Rules != "" {
		t.Errorf("a node sees its own report: %+v", all)
	}
	before, _ := onB.Reports()
	onB.Report(encoded(t, "of b"))
	f.eventually("the report of the other node", seen(onA, "b:1", "of b"))
	onA.Report(encoded(t, "two"))
	f.eventually("another report", seen(onB, "a:1", "two"))
	if before["a:1"].Rules != "one" {
		t.Errorf("a report that was returned has become %+v", before["a:1"])
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
	onA.Report(encoded(t, "of another division"))
	f.eventually("it has a new one", seen(onB, "a:1", "of another division"))

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
	of := func(addr, data string) zk.Entry { return zk.Entry{Name: x.Code() + "@" + addr, Data: encoded(t, data)} }
	if all, known := f.Reports(); known {
		t.Errorf("before there are any, reports %+v are known", all)
	}
	f.updateReports([]zk.Entry{of("a:1", "one"), of("b:1", "two")})
	before, _ := f.Reports()
	f.updateReports([]zk.Entry{of("a:1", "one"), of("b:1", "three"), of("c:1", "four")})
	after, _ := f.Reports()
	if before["b:1"].Rules != "two" || after["a:1"].Rules != "one" || after["b:1"].Rules != "three" || len(before) != 2 || len(after) != 3 {
		t.Errorf("reports %+v and %+v", before, after)
	}
	f.updateReports([]zk.Entry{of("a:1", "five"), {Name: x.Code() + "@b:1", Data: []byte("no report")}})
	if after, _ = f.Reports(); after["a:1"].Rules != "five" || len(after) != 1 {
		t.Errorf("reports %+v beside one that cannot be parsed", after)
	}
}
