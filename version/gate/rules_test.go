package gate_test

import (
	"regexp"
	"strings"
	"testing"

	"sequins/internal/content"
	"sequins/store"
	"sequins/version/gate"
	"sequins/version/report"
)

// measured are facts of a content with one partition, which is here, next to version 1 with 1,000 records of 10 bytes.
func measured(rules gate.Rules, f report.Figures) gate.Facts {
	return gate.Facts{Rules: rules, Held: []bool{true}, Known: true, Served: of("1"), Sampled: of("1"), Totals: &store.Totals{Records: 1000, Bytes: 10_000},
		Figures: map[int]report.Figures{0: f}, Own: &gate.Measures{Held: []bool{true}, Rules: rules.Fingerprint(), Against: of("1"), Sample: report.Sample{Keys: 1000}}}
}

// Each rule at its limit and just beyond it.
func TestRules(t *testing.T) {
	type change func(f *gate.Facts)
	figures := func(records, bytes int64) change {
		return func(f *gate.Facts) { f.Figures[0] = report.Figures{Records: records, Bytes: bytes} }
	}
	missing := func(n, keys int64) change {
		return func(f *gate.Facts) { f.Own.Sample = report.Sample{Keys: keys, Missing: n} }
	}
	largest := func(n int64) change {
		return func(f *gate.Facts) { f.Figures[0] = report.Figures{Records: 1000, Bytes: 10_000, Largest: n} }
	}
	failed := func(texts ...string) change { return func(f *gate.Facts) { f.Own.Failed = texts } }
	nothing := func(f *gate.Facts) {
		f.Served, f.Sampled, f.Totals = content.Content{}, content.Content{}, nil
		figures(1, 1)(f)
	}
	empty := func(f *gate.Facts) { f.Totals = &store.Totals{}; figures(5, 5)(f); missing(0, 0)(f) }
	for name, test := range map[string]struct {
		rules     gate.Rules
		good, bad change
		reason    string
	}{
		"min records":     {gate.Rules{MinRecords: 10}, figures(10, 1), figures(9, 1), "min_records: 9 records, at least 10"},
		"shrink, records": {gate.Rules{MaxShrink: 0.29}, figures(710, 10_000), figures(709, 10_000), "max_shrink: 709 records instead of 1,000, 29.1 % fewer, at most 29 %"},
		"shrink, bytes":   {gate.Rules{MaxShrink: 0.5}, figures(1000, 5000), figures(1000, 4999), "max_shrink: 4,999 bytes instead of 10,000, 50.01 % fewer, at most 50 %"},
		"shrink to none":  {gate.Rules{MaxShrink: 0.999}, figures(1, 10), figures(0, 0), "max_shrink: 0 records instead of 1,000, 100 % fewer, at most 99.9 %; max_shrink: 0 bytes"},
		"growth":          {gate.Rules{MaxGrowth: 2}, figures(3000, 30_000), figures(3001, 10_000), "max_growth: 3,001 records instead of 1,000, 200.1 % more, at most 200 %"},
		"missing":         {gate.Rules{MaxMissing: 0.1}, missing(100, 1000), missing(101, 1000), "max_missing: 101 of 1,000 keys of the version that is served are missing, 10.1 %, at most 10 %"},
		"not sampled":     {gate.Rules{MaxMissing: 0.9}, missing(0, 1), missing(0, 0), "max_missing: no node has partitions of both versions"},
		"value size":      {gate.Rules{MaxValueSize: 100}, largest(100), largest(101), "max_value_size: the largest value has 101 bytes, at most 100"},
		"required":        {gate.Rules{Required: []gate.Required{{Key: "a"}}}, failed(), failed("key a is missing"), "required_keys: key a is missing"},
		"many required":   {gate.Rules{Required: []gate.Required{{Key: "a"}}}, failed(), failed("1", "2", "3", "4", "5", "6", "7"), "required_keys: 1, 2, 3, 4, 5 and 2 more"},
		"first version":   {gate.Rules{MaxShrink: 0.1, MaxMissing: 0.1}, nothing, figures(1, 1), "max_shrink"},
		"after nothing":   {gate.Rules{MaxShrink: 0.1, MaxGrowth: 0.1, MaxMissing: 0.1}, empty, figures(1, 1), "max_shrink"},
	} {
		for _, bad := range []bool{false, true} {
			f, want, reason := measured(test.rules, report.Figures{Records: 1000, Bytes: 10_000}), store.Passed, ""
			if bad {
				test.bad(&f)
				want, reason = store.Held, test.reason
			} else {
				test.good(&f)
			}
			v := gate.Judge(f)
			if v.State != want || !strings.HasPrefix(v.Reason, reason) || v.Finding.State != want || v.Excused {
				t.Errorf("%s, bad %v: %s: %s; want %s: %s", name, bad, v.State, v.Reason, want, reason)
			}
		}
	}
}

// Rules have the same fingerprint if, and only if, they are the same.
func TestFingerprint(t *testing.T) {
	key := func(key, pattern string) gate.Rules {
		return gate.Rules{Required: []gate.Required{{Key: key, Value: regexp.MustCompile(pattern)}}}
	}
	all := []gate.Rules{{MinRecords: 1}, {MinRecords: 2}, {MaxShrink: 1}, {MaxGrowth: 1}, {MaxMissing: 1}, {MaxValueSize: 1}, key("k", "x"), key("k", "y"), key("j", "x"),
		{Required: []gate.Required{{Key: "k"}}}}
	seen := map[string]bool{"": true}
	for _, r := range all {
		if seen[r.Fingerprint()] || r.IsZero() {
			t.Errorf("%+v", r)
		}
		seen[r.Fingerprint()] = true
	}
	first, again := key("k", "x"), key("k", "x")
	if first.Fingerprint() != again.Fingerprint() || (gate.Rules{}).Fingerprint() != "" || !(gate.Rules{}).IsZero() {
		t.Error("the same rules")
	}
}

// Where no key of what is served can be read, max_missing waits for other nodes, and is left out then; the other rules are applied.
func TestNoKeysToLookUp(t *testing.T) {
	f := measured(gate.Rules{MaxShrink: 0.5, MaxMissing: 0.5}, report.Figures{Records: 1000, Bytes: 10_000})
	f.Sampled, f.Own.Against, f.Own.Sample = content.Content{}, content.Content{}, report.Sample{}
	if v := gate.Judge(f); v.State != store.Pending || !v.Waits {
		t.Errorf("at first it is %s (waits %v): %s", v.State, v.Waits, v.Reason)
	}
	f.Waited = true
	if v := gate.Judge(f); v.State != store.Passed || !strings.HasPrefix(v.Skipped, "max_missing is not applied: no node has keys of version 1") {
		t.Errorf("then it is %s: %s; skipped: %s", v.State, v.Reason, v.Skipped)
	}
	f.Figures[0] = report.Figures{Records: 499, Bytes: 10_000}
	if v := gate.Judge(f); v.State != store.Held {
		t.Errorf("half of it is %s: %s", v.State, v.Reason)
	}
}
