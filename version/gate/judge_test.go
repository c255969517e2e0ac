package gate_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"sequins/internal/content"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version/gate"
	"sequins/version/report"
)

var (
	shrink = gate.Rules{MaxShrink: 0.3}
	other  = gate.Rules{MaxShrink: 0.9}
)

// seen is a report of a node with rules that serves a version, or "", with what it finds next to against, or "", by these rules. It has the
// figures of partition 1 with 1,000 records.
func seen(rules gate.Rules, serves string, state string, against string) report.Report {
	r := report.Report{Rules: rules.Fingerprint(), Measured: true, Finding: store.Finding{State: state, Rules: rules.Fingerprint()},
		Blocks: map[int]report.Figures{1: {Records: 1000, Bytes: 1000}}}
	if state == store.Held {
		r.Finding.Reason = "too few"
	}
	if serves != "" {
		r.Served = of(serves)
	}
	if against != "" {
		r.Finding.Against = of(against)
	}
	return r
}

func vetoed(r report.Report) report.Report  { r.Finding.Vetoed = true; return r }
func serving(r report.Report) report.Report { r.Served = of("3"); return r }

// judging are facts of version 3 with two partitions, of which this node has the first one with so many records, and serves version 2 with
// 2,000.
func judging(records int64, reports ...report.Report) gate.Facts {
	f := measured(shrink, report.Figures{Records: records, Bytes: records})
	f.Held, f.Own.Held = []bool{true, false}, []bool{true, false}
	f.Served, f.Sampled, f.Own.Against, f.Totals = of("2"), of("2"), of("2"), &store.Totals{Records: 2000, Bytes: 2000}
	f.Reports = make(map[string]report.Report)
	for i, r := range reports {
		f.Reports[string(rune('a'+i))] = r
	}
	return f
}

func with(f gate.Facts, changes ...func(f *gate.Facts)) gate.Facts {
	for _, change := range changes {
		change(&f)
	}
	return f
}

func unmeasured(f *gate.Facts)    { f.Own, f.Figures = nil, nil }
func unsummed(f *gate.Facts)      { f.Totals = nil }
func waited(f *gate.Facts)        { f.Waited = true }
func servesNothing(f *gate.Facts) { f.Served, f.Totals = content.Content{}, nil }
func older(f *gate.Facts)         { f.Older, f.Served = true, of("4") }
func excused(f *gate.Facts)       { f.Excused = "it is pinned" }
func before(state string, rules gate.Rules, against string) func(f *gate.Facts) {
	return func(f *gate.Facts) {
		f.Before = &store.Finding{State: state, Reason: "as before", Rules: rules.Fingerprint()}
		if against != "" {
			f.Before.Against = of(against)
		}
	}
}
func vetoedBefore(f *gate.Facts) { before(store.Held, shrink, "")(f); f.Before.Vetoed = true }
func minimum(f *gate.Facts) {
	f.Rules = gate.Rules{MinRecords: 3000}
	f.Own.Rules = f.Rules.Fingerprint()
}

const good, bad = 1000, 300

func TestJudge(t *testing.T) {
	figures := seen(gate.Rules{}, "", store.Passed, "")
	passed, held := seen(shrink, "2", store.Passed, "2"), seen(shrink, "2", store.Held, "2")
	for name, test := range map[string]struct {
		f      gate.Facts
		want   string
		reason string
	}{
		"no rules":         {gate.Facts{Reports: map[string]report.Report{"a": vetoed(held)}}, store.Passed, ""},
		"keeps the rules":  {judging(good, figures), store.Passed, ""},
		"breaks a rule":    {judging(bad, figures), store.Held, "max_shrink: 1,300 records instead of 2,000"},
		"excused":          {with(judging(bad, vetoed(held)), excused), store.Passed, "it is pinned"},
		"excused at once":  {with(judging(bad), excused, unmeasured), store.Passed, "it is pinned"},
		"other's veto":     {judging(good, figures, vetoed(held), passed), store.Held, "node b holds it: too few"},
		"veto, other rule": {judging(good, figures, vetoed(seen(other, "2", store.Held, "2"))), store.Passed, ""},
		"veto, unmeasured": {with(judging(good, vetoed(held)), unmeasured), store.Held, "node a holds it"},

		"not measured":              {with(judging(good, figures), unmeasured), store.Pending, "are being read"},
		"not readable":              {with(judging(good, figures), unmeasured, func(f *gate.Facts) { f.Own = &gate.Measures{Err: errors.New("torn page")} }), store.Pending, "torn page"},
		"a figure is unknown":       {judging(good), store.Pending, "the figures of 1 partition are not known yet: 1"},
		"reports are unknown":       {with(judging(good, figures), func(f *gate.Facts) { f.Known = false }), store.Pending, "what other nodes report"},
		"measured, another content": {with(judging(good, figures), func(f *gate.Facts) { f.Rules.MaxMissing, f.Own.Against = 0.5, of("1") }), store.Pending, "are being read"},
		"unknown, but passed":       {with(judging(good, passed), unmeasured), store.Passed, "node a has passed it"},
		"unknown, but held":         {with(judging(good, held), unmeasured), store.Held, "node a holds it: too few"},

		"another has passed it":        {judging(bad, figures, passed), store.Passed, "node b has passed it"},
		"another holds it":             {judging(good, figures, held), store.Passed, ""},
		"one of two":                   {with(judging(good, held, passed), unmeasured), store.Passed, "node b has passed it"},
		"passed, other rules":          {judging(bad, seen(other, "2", store.Passed, "2")), store.Held, "max_shrink"},
		"held, other rules":            {with(judging(good, seen(other, "3", store.Held, "3")), servesNothing), store.Passed, ""},
		"passed, older served":         {judging(bad, seen(shrink, "1", store.Passed, "1")), store.Held, "max_shrink"},
		"held, newer served":           {judging(good, seen(shrink, "20", store.Held, "20"), passed), store.Held, "node a holds it"},
		"passed, newer served":         {judging(bad, seen(shrink, "20", store.Passed, "20"), held), store.Passed, "node a has passed it"},
		"passed, nothing compared":     {judging(bad, seen(shrink, "", store.Passed, "")), store.Held, "max_shrink"},
		"served, and compared":         {judging(bad, serving(passed)), store.Passed, "node a has passed it"},
		"served, nothing compared":     {judging(bad, serving(seen(shrink, "", store.Passed, ""))), store.Held, "max_shrink"},
		"served, other rules":          {judging(bad, serving(seen(other, "", store.Passed, "2"))), store.Held, "max_shrink"},
		"newer served is pending":      {judging(good, seen(shrink, "20", store.Pending, "")), store.Pending, "node a serves version 20 and has not judged"},
		"newer is pending for long":    {with(judging(good, seen(shrink, "20", store.Pending, "")), waited), store.Passed, ""},
		"same served is pending":       {judging(good, seen(shrink, "2", store.Pending, "")), store.Passed, ""},
		"newer is pending, bad here":   {judging(bad, seen(shrink, "20", store.Pending, "")), store.Held, "max_shrink"},
		"newer has decided already":    {judging(good, seen(shrink, "20", store.Pending, ""), seen(shrink, "20", store.Passed, "20")), store.Passed, "node b has passed it"},
		"newer pending, other rules":   {judging(good, seen(other, "20", store.Pending, "")), store.Passed, ""},
		"no wait for a former version": {judging(good, seen(gate.Rules{}, "20", store.Passed, "")), store.Passed, ""},

		"nothing served":              {with(judging(bad, figures), servesNothing), store.Passed, ""},
		"nothing served, min_records": {with(judging(bad, figures), servesNothing, minimum), store.Held, "min_records"},
		"nothing served, held there":  {with(judging(good, held), servesNothing), store.Held, "node a holds it"},
		"nothing served, passed":      {with(judging(good, passed), servesNothing), store.Passed, "node a has passed it"},
		"nothing served, wait":        {with(judging(good, seen(shrink, "2", store.Pending, "")), servesNothing), store.Pending, "node a serves version 2 and has not"},
		"nothing served, older pass":  {with(judging(good, passed, seen(shrink, "20", store.Pending, "")), servesNothing), store.Pending, "node b serves version 20"},
		"nothing served, waited":      {with(judging(good, seen(shrink, "2", store.Pending, "")), servesNothing, waited), store.Passed, ""},

		"totals are unknown":         {with(judging(bad, figures), unsummed), store.Pending, "the totals of version 2, which is served, are not known"},
		"totals for long":            {with(judging(bad, figures), unsummed, waited), store.Passed, ""},
		"totals for long, held":      {with(judging(good, held), unsummed, waited), store.Held, "node a holds it"},
		"totals for long, old":       {with(judging(good, seen(shrink, "1", store.Held, "1")), unsummed, waited), store.Passed, ""},
		"totals are needed by none":  {with(judging(good, figures), unsummed, minimum), store.Held, "min_records: 2,000 records"},
		"totals, figure is unknown":  {with(judging(good), unsummed, waited), store.Pending, "the figures of 1 partition"},
		"older, totals are not used": {with(judging(bad, figures), unsummed, older), store.Passed, ""},

		"older, never judged":        {with(judging(bad, figures), older), store.Passed, ""},
		"older, no wait":             {with(judging(good, seen(shrink, "40", store.Pending, "")), older), store.Passed, ""},
		"older, min_records":         {with(judging(bad, figures), older, minimum), store.Held, "min_records"},
		"older, held before":         {with(judging(good, figures), older, before(store.Held, shrink, "2")), store.Held, "as before"},
		"older, held by other rules": {with(judging(good, figures), older, before(store.Held, other, "2")), store.Passed, ""},
		"older, held elsewhere":      {with(judging(good, held), older), store.Held, "node a holds it"},
		"older, held, excused":       {with(judging(good, held), older, before(store.Held, shrink, "2"), excused), store.Passed, "it is pinned"},

		"restart, held":              {with(judging(good), unmeasured, before(store.Held, shrink, "2")), store.Held, "as before"},
		"restart, passed":            {with(judging(good), unmeasured, before(store.Passed, shrink, "2")), store.Passed, "as before"},
		"restart, other rules":       {with(judging(good), unmeasured, before(store.Held, other, "2")), store.Pending, "are being read"},
		"restart, older comparison":  {with(judging(good), unmeasured, before(store.Held, shrink, "1")), store.Pending, "are being read"},
		"restart, newer comparison":  {with(judging(good), unmeasured, before(store.Held, shrink, "20")), store.Held, "as before"},
		"restart, measured again":    {with(judging(good, figures), before(store.Held, shrink, "2")), store.Passed, ""},
		"restart, held, now passed":  {with(judging(good, passed), unmeasured, before(store.Held, shrink, "2")), store.Passed, "node a has passed it"},
		"restart, passed, newer":     {with(judging(good, seen(shrink, "20", store.Pending, "")), unmeasured, before(store.Passed, shrink, "2")), store.Pending, "node a serves"},
		"restart, veto":              {with(judging(good, passed), unmeasured, vetoedBefore), store.Held, "as before"},
		"restart, veto, measured":    {with(judging(good, figures), vetoedBefore), store.Passed, ""},
		"restart, veto, other rules": {with(judging(good, passed), unmeasured, vetoedBefore, minimumOnly), store.Pending, "are being read"},
	} {
		v := gate.Judge(test.f)
		if v.State != test.want || !strings.Contains(v.Reason, test.reason) || (test.reason == "") != (v.Reason == "") {
			t.Errorf("%s: %s (%s); want %s (%s)", name, v.State, v.Reason, test.want, test.reason)
		}
		if v.MayServe() != (v.State == store.Passed) || v.Waits && v.State != store.Pending || v.Excused != (test.f.Excused != "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func minimumOnly(f *gate.Facts) { f.Rules = gate.Rules{MinRecords: 3000} }

// What is asked for by Waits ends with Waited, and nothing else waits for it.
func TestWaits(t *testing.T) {
	figures := seen(gate.Rules{}, "", store.Passed, "")
	for name, test := range map[string]struct {
		f    gate.Facts
		want bool
	}{
		"totals":      {with(judging(good, figures), unsummed), true},
		"newer":       {judging(good, seen(shrink, "20", store.Pending, "")), true},
		"figures":     {judging(good), false},
		"measures":    {with(judging(good, figures), unmeasured, unsummed), false},
		"held before": {with(judging(good, figures), unsummed, before(store.Held, shrink, "2")), false},
	} {
		if v := gate.Judge(test.f); v.Waits != test.want {
			t.Errorf("%s: %+v", name, v)
		}
		if v := gate.Judge(with(test.f, waited)); v.Waits || test.want && v.State == store.Pending {
			t.Errorf("%s, waited: %+v", name, v)
		}
	}
}

// A block of this node that breaks a rule holds the content, though another node has passed it.
func TestVeto(t *testing.T) {
	passed := seen(gate.Rules{MaxValueSize: 100}, "2", store.Passed, "2")
	f := judging(good, passed)
	f.Rules = gate.Rules{MaxValueSize: 100}
	f.Own.Rules = f.Rules.Fingerprint()
	if v := gate.Judge(f); v.State != store.Passed || v.Own.Vetoed {
		t.Errorf("%+v", v)
	}
	f.Figures[0] = report.Figures{Records: good, Bytes: good, Largest: 101}
	if v := gate.Judge(f); v.State != store.Held || !v.Own.Vetoed || !v.Vetoed {
		t.Errorf("%+v", v)
	}
	f.Rules.MinRecords = 3000
	f.Own.Rules = f.Rules.Fingerprint()
	if v := gate.Judge(f); v.Reason != "max_value_size: the largest value has 101 bytes, at most 100; min_records: 2,000 records, at least 3,000" || len(v.Checks) != 2 {
		t.Errorf("all broken rules are named: %+v", v)
	}
	f = judging(good, vetoed(seen(shrink, "2", store.Held, "2")))
	if v := gate.Judge(f); v.State != store.Held || v.Own.Vetoed || v.Vetoed {
		t.Errorf("the veto of another node is none of this one: %+v", v)
	}
	f.Excused = "it is approved"
	if v := gate.Judge(f); v.State != store.Passed || v.Finding != (store.Finding{State: store.Passed, Reason: "it is approved"}) {
		t.Errorf("%+v", v)
	}
}

// Samples of the same content are added up.
func TestSamples(t *testing.T) {
	rules := gate.Rules{MaxMissing: 0.1}
	sampled := func(served string, missing int64) report.Report {
		r := seen(rules, served, store.Pending, "")
		r.Sample = report.Sample{Keys: 100, Missing: missing}
		return r
	}
	for name, test := range map[string]struct {
		reports []report.Report
		want    string
	}{
		"own":            {[]report.Report{sampled("2", 0)}, store.Passed},
		"both":           {[]report.Report{sampled("2", 21)}, store.Held},
		"of an old one":  {[]report.Report{sampled("1", 100)}, store.Passed},
		"of three nodes": {[]report.Report{sampled("2", 21), sampled("2", 8)}, store.Passed},
	} {
		f := judging(good, test.reports...)
		f.Rules, f.Own.Rules, f.Own.Sample = rules, rules.Fingerprint(), report.Sample{Keys: 100}
		if v := gate.Judge(f); v.State != test.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Faults of issue 30.

// A node that was away while a good version came, which the others serve, and then two bad ones, compares with a version from before: the bad ones are
// not so bad next to that. It holds them as the others do, in any order in which it learns of that.
func TestGateReturnsAfterGoodThenTwoBad(t *testing.T) {
	for _, version := range []string{"3", "4"} {
		f := judging(good, seen(shrink, "2", store.Pending, ""))
		f.Served, f.Own.Against, f.Totals = of("1"), of("1"), &store.Totals{Records: 1000, Bytes: 1000}
		v := gate.Judge(f)
		if v.State != store.Pending || !v.Waits || v.Own.State != store.Pending {
			t.Errorf("%s, before the others have judged: %+v", version, v)
		}
		f.Reports["a"] = seen(shrink, "2", store.Held, "2")
		for _, waited := range []bool{false, true} {
			f.Waited = waited
			if v := gate.Judge(f); v.State != store.Held || v.Against != of("2") {
				t.Errorf("%s: %+v", version, v)
			}
		}
		f.Before = new(gate.Judge(f).Finding)
		unmeasured(&f)
		delete(f.Reports, "a")
		if v := gate.Judge(f); v.State != store.Held {
			t.Errorf("%s, after a restart: %+v", version, v)
		}
		f.Served, f.Own, f.Figures = of("2"), judging(bad).Own, judging(bad).Figures // it takes the good version first
		f.Totals, f.Reports["a"] = &store.Totals{Records: 2000, Bytes: 2000}, seen(shrink, "2", store.Held, "2")
		if v := gate.Judge(f); v.State != store.Held || v.Own.Against != of("2") {
			t.Errorf("%s, after the good one: %+v", version, v)
		}
	}
}

// The totals of what is served are lost with STATE.json: newer versions are not kept waiting without end, and it is said which rules they have
// not been judged by. They have been compared with nothing, which is no sign for other nodes.
func TestTotalsOfServedAreLost(t *testing.T) {
	f := with(judging(bad, seen(gate.Rules{}, "", store.Passed, "")), unsummed)
	if v := gate.Judge(f); v.State != store.Pending || !v.Waits || v.Skipped != "" {
		t.Errorf("%+v", v)
	}
	v := gate.Judge(with(f, waited))
	if v.State != store.Passed || !strings.Contains(v.Skipped, "max_shrink") || !strings.Contains(v.Skipped, "version 2") || v.Own.Against.Name != "" || v.Against.Name != "" {
		t.Errorf("%+v", v)
	}
	r := gate.NewReport(of("2"), shrink, nil, nil, v.Own)
	r.Blocks = seen(shrink, "", store.Passed, "").Blocks
	if v := gate.Judge(judging(bad, r)); v.State != store.Held {
		t.Errorf("another node: %+v", v)
	}
}

// A node without rules serves a version as soon as it is there. That is no sign for those with rules, but its figures count.
func TestNodeWithoutRulesIsNoWitness(t *testing.T) {
	without := gate.Judge(gate.Facts{Served: of("2")})
	own := map[int]report.Figures{1: {Records: 1000, Bytes: 1000}}
	for name, r := range map[string]report.Report{
		"before the switch":  gate.NewReport(of("2"), gate.Rules{}, own, nil, without.Own),
		"after the switch":   gate.NewReport(of("3"), gate.Rules{}, own, nil, without.Finding),
		"with rules by then": gate.NewReport(of("3"), shrink, own, nil, without.Finding),
		"never judged":       gate.NewReport(of("3"), shrink, own, nil, store.Finding{}),
	} {
		if v := gate.Judge(judging(bad, r)); v.State != store.Held || v.Own.Against != of("2") {
			t.Errorf("%s: %+v", name, v)
		}
		if v := gate.Judge(judging(good, r)); v.State != store.Passed {
			t.Errorf("%s, good: %+v", name, v)
		}
	}
}

// A node that loads slowly keeps the others from judging the sum, whatever they know. None of them takes the figures that it lacks for zero.
func TestMinRecordsWithSlowNode(t *testing.T) {
	f := judging(2999)
	minimum(&f)
	f.Waited = true
	if v := gate.Judge(f); v.State != store.Pending || len(v.Checks) != 0 {
		t.Errorf("%+v", v)
	}
	f.Reports["slow"] = gate.NewReport(of("2"), f.Rules, nil, nil, store.Finding{State: store.Pending, Rules: f.Rules.Fingerprint()})
	if v := gate.Judge(f); v.State != store.Pending {
		t.Errorf("%+v", v)
	}
	for records, want := range map[int64]string{0: store.Held, 1: store.Passed} {
		slow := map[int]report.Figures{1: {Records: records}}
		r := gate.NewReport(of("2"), f.Rules, slow, nil, store.Finding{State: store.Pending, Rules: f.Rules.Fingerprint()})
		f.Reports["slow"] = r
		if v := gate.Judge(f); v.State != store.Pending {
			t.Errorf("%d, not measured: %+v", records, v)
		}
		r.Measured = true
		f.Reports["slow"] = r
		if v := gate.Judge(f); v.State != want {
			t.Errorf("%d: %+v", records, v)
		}
	}
}

func encoded(t testing.TB, r report.Report) []byte {
	t.Helper()
	data, err := r.Encode()
	expect.NoError(t, err)
	return data
}

// FuzzReport: a report that is accepted has figures that can be added without overflow, can be judged, and is
// the same after encoding.
func FuzzReport(f *testing.F) {
	f.Add(encoded(f, report.Report{Rules: shrink.Fingerprint(), Finding: store.Finding{State: store.Pending}, Served: of("20"), Sample: report.Sample{Keys: 9, Missing: 1}, Blocks: map[int]report.Figures{0: {Records: 1}, 3: {Bytes: 1 << 35}}}))
	f.Add(encoded(f, report.Report{Finding: store.Finding{State: store.Held, Rules: shrink.Fingerprint(), Against: of("2"), Vetoed: true}}))
	f.Add([]byte(`{"finding":{"state":"held","reason":"\u0000\ud800"}}` + "\n\x01\x02\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := report.Parse(data)
		if err != nil {
			return
		}
		const most = 1 << 42
		for p, b := range r.Blocks {
			if p < 0 || min(b.Records, b.Bytes) < 0 || max(b.Records, b.Bytes) > most {
				t.Fatalf("%d: %+v", p, b)
			}
		}
		if v := gate.Judge(judging(good, r)); r.Finding.Vetoed && r.Finding.Rules == shrink.Fingerprint() && v.State != store.Held {
			t.Fatalf("%+v", v)
		}
		again, err := r.Encode()
		if err != nil {
			if len(data) < report.MaxSize/8 {
				t.Fatal(err)
			}
			return // what JSON escapes can be longer than it was
		}
		if got, err := report.Parse(again); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%+v, %v, want %+v", got, err, r)
		}
	})
}
