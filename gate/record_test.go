package gate

import (
	"fmt"
	"strings"
	"testing"
)

// figuresOf are those of a version with one partition.
func figuresOf(records int64) Measured {
	return Measured{Figures: []*Totals{{records, records}}}
}

// candidate is a version with one partition, which is on this node.
func candidate(id, served string) Candidate {
	return Candidate{ID: id, Plan: "plan of " + id, Held: []bool{true}, Settled: true, Known: true, Served: served, Active: id == served}
}

// again returns a gate with the same rules that knows what this one has saved, as after a restart.
func (g *Gate) again(t *testing.T) *Gate {
	t.Helper()
	var saved []byte
	if err := g.Save(func(data []byte) error { saved = data; return nil }); err != nil {
		t.Fatal(err)
	}
	r, err := ParseRecord(saved)
	if err != nil {
		t.Fatal(err)
	}
	other := New(r)
	other.SetRules(g.rules)
	return other
}

// holding returns a gate with 1 served and 2 held.
func holding(t *testing.T, rules Rules) *Gate {
	t.Helper()
	g := New(Record{})
	g.SetRules(rules)
	g.Measured("1", "", rules, figuresOf(100), nil)
	g.Judge(candidate("1", "1"))
	g.Measured("2", "1", rules, figuresOf(10), nil)
	if v := g.Judge(candidate("2", "1")); v.State != Held || v.Known {
		t.Fatalf("%+v", v)
	}
	return g
}

// What is held stays so over a restart, also before its figures are read again, until the rules or the blocks are others.
func TestMarks(t *testing.T) {
	rules := Rules{MaxShrink: 0.5}
	older := candidate("2", "3")
	older.Older = true
	served := candidate("1", "3")
	served.Older = true
	never := candidate("0", "3")
	never.Older = true
	replanned := candidate("2", "1")
	replanned.Plan = "another"
	approved := candidate("2", "1")
	approved.Excused = "it is approved"
	for name, test := range map[string]struct {
		c     Candidate
		rules Rules
		want  State
	}{
		"the same":                     {candidate("2", "1"), rules, Held},
		"compared with another":        {candidate("2", "11"), rules, Pending},
		"other rules":                  {candidate("2", "1"), Rules{MaxShrink: 0.6}, Pending},
		"other blocks":                 {replanned, rules, Pending},
		"approved":                     {approved, rules, Passed},
		"older than what is served":    {older, rules, Held},
		"an older one that was served": {served, rules, Passed},
		"an older one, never judged":   {never, rules, Pending},
	} {
		g := holding(t, rules).again(t)
		g.SetRules(test.rules)
		if v := g.Judge(test.c); v.State != test.want || v.Known != (v.State == Held) {
			t.Errorf("%s: %s (%s), known %v; want %s", name, v.State, v.Reason, v.Known, test.want)
		}
	}
}

// An older version that was never judged need not be like the one that people do not want.
func TestOlder(t *testing.T) {
	rules := Rules{MaxShrink: 0.1, MinRecords: 5}
	g := New(Record{Last: &Last{Version: "3", Totals: Totals{100, 100}}})
	g.SetRules(rules)
	for records, want := range map[int64]State{5: Passed, 4: Held} {
		c := candidate("2", "3")
		c.Older = true
		g.Measured("2", "3", rules, figuresOf(records), nil)
		if v := g.Judge(c); v.State != want {
			t.Errorf("%d records: %s: %s", records, v.State, v.Reason)
		}
		g.unmark("2")
	}
}

// A node that has served nothing before takes a version without comparing. After its restart it still does not count as a
// node that has compared.
func TestBlindAfterRestart(t *testing.T) {
	rules := Rules{MaxShrink: 0.5}
	b := New(Record{})
	b.SetRules(rules)
	b.Measured("2", "", rules, figuresOf(1), nil)
	if v := b.Judge(candidate("2", "")); v.State != Passed {
		t.Fatalf("%+v", v)
	}
	b.Judge(candidate("2", "2"))
	b = b.again(t)
	c := candidate("2", "")
	c.Excused = "it was served before a restart"
	b.Measured("2", "", rules, figuresOf(1), nil)
	b.Judge(c)
	report := b.Judge(candidate("2", "2")).Report

	a := holding(t, rules)
	c = candidate("2", "1")
	c.Reports = map[string][]byte{"b:1": report}
	if v := a.Judge(c); v.State != Held {
		t.Errorf("%s: %s", v.State, v.Reason)
	}
	if !AnyServes(c.Reports) || AnyServes(map[string][]byte{"b:1": []byte("{")}) {
		t.Error("AnyServes")
	}
}

// While a version is loaded, figures by other rules are not used, and what could not be read is read again.
func TestFiguresOfOtherRules(t *testing.T) {
	g := New(Record{})
	g.Measured("1", "", Rules{MinRecords: 1}, figuresOf(1), nil)
	g.SetRules(Rules{Required: []Required{{Key: "k"}}})
	c := candidate("1", "")
	c.Settled = false
	if v := g.Judge(c); v.State != Pending || v.Measure {
		t.Errorf("%+v", v)
	}
	c.Settled = true
	g.Measured("1", "", g.rules, Measured{Figures: []*Totals{{1, 1}}, Failed: []string{"key k cannot be read"}}, fmt.Errorf("torn page"))
	if v := g.Judge(c); v.State != Pending || !v.Measure || !strings.Contains(v.Reason, "torn page") {
		t.Errorf("%+v", v)
	}
}

// The number of marks is limited, and what is not a record is an error.
func TestRecord(t *testing.T) {
	g := New(Record{})
	for i := range 3 * maxMarks {
		g.setMark(Mark{Version: fmt.Sprintf("%04d", i*7%(3*maxMarks)), Held: strings.Repeat("é", maxMarkReason)})
	}
	other := g.again(t)
	if n := len(other.record.HeldIDs()); n != maxMarks || other.record.Marks[0].Version < "0150" {
		t.Errorf("%d marks from %s", n, other.record.Marks[0].Version)
	}
	failing := fmt.Errorf("disk full")
	other.unmark("0299")
	if err := other.Save(func([]byte) error { return failing }); err != failing {
		t.Error(err)
	}
	if err := other.Save(func([]byte) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := other.Save(func([]byte) error { t.Error("saved twice"); return nil }); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"{", `{"marks":[{"version":"2"},{"version":"1"}]}`, `{"marks":[` + strings.Repeat("{},", maxMarks) + `{}]}`} {
		if r, err := ParseRecord([]byte(bad)); err == nil {
			t.Errorf("%.40s: %+v", bad, r)
		}
	}
}

// A node is told of others that judge by other rules.
func TestOtherwise(t *testing.T) {
	rules := Rules{MinRecords: 1}
	report := func(r Rules) []byte {
		g := New(Record{})
		g.SetRules(r)
		g.Measured("1", "", r, figuresOf(10), nil)
		return g.Judge(candidate("1", "")).Report
	}
	g := New(Record{})
	g.SetRules(rules)
	c := candidate("1", "")
	c.Reports = map[string][]byte{"a:1": report(rules), "b:1": report(Rules{MinRecords: 2})}
	if v := g.Judge(c); len(v.Otherwise) != 1 || v.Otherwise[0] != "b:1" {
		t.Errorf("%v", v.Otherwise)
	}
}

// A mark for which there is no room is not recorded again and again.
func TestMarksOfOlderVersions(t *testing.T) {
	g := New(Record{})
	for i := range maxMarks {
		g.setMark(Mark{Version: fmt.Sprint(1000 + i), Served: true})
	}
	g = g.again(t)
	g.setMark(Mark{Version: "0999", Served: true})
	if err := g.Save(func([]byte) error { t.Error("it is written"); return nil }); err != nil {
		t.Error(err)
	}
	g.setMark(Mark{Version: "1001", Held: "a rule"})
	g.setMark(Mark{Version: "2000", Served: true})
	if ids := g.again(t).record.ServedIDs(); len(ids) != maxMarks-1 || ids[0] != "1002" {
		t.Errorf("%d served from %s", len(ids), ids[0])
	}
}

// What is older than the served version, and is not known here, is held if another node has held it. If it is served, that
// is no judgement for other nodes.
func TestOlderIsNoJudgement(t *testing.T) {
	rules := Rules{MaxShrink: 0.5}
	g := New(Record{Last: &Last{Version: "3", Totals: Totals{100, 100}}})
	g.SetRules(rules)
	g.Measured("2", "3", rules, figuresOf(10), nil)
	c := candidate("2", "3")
	c.Older, c.Asking = true, true
	if v := g.Judge(c); v.State != Pending {
		t.Errorf("%+v", v)
	}
	c.Asking = false
	for _, active := range []bool{false, true} {
		if active {
			c = candidate("2", "2")
		}
		v := g.Judge(c)
		r, err := parseReport(v.Report)
		if !v.MayServe() || err != nil || r.Judge {
			t.Errorf("%+v, %v: %+v", v, err, r)
		}
	}
	g = g.again(t)
	g.unmark("2")
	g.Measured("2", "3", rules, figuresOf(10), nil)
	c = candidate("2", "3")
	c.Older, c.HeldBy = true, "node b:1 has held it"
	if v := g.Judge(c); v.State != Held || v.Reason != c.HeldBy {
		t.Errorf("%+v", v)
	}
	if m := g.HeldMarks("3"); len(m) != 1 || m[0].Version != "2" || !g.Marked("2", c.Plan) {
		t.Errorf("%+v", m)
	}
}
