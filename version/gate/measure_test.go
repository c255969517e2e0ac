package gate_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
	"sequins/version/gate"
	"sequins/version/report"
)

// of returns a content of a name.
func of(name string) content.Content {
	return content.Content{Input: content.Input{Name: name, Hash: content.Sum("input", name)}, Division: content.Sum("division", name)}
}

// open returns a version with the records of a map, of which the node holds some partitions.
func open(t *testing.T, name string, partitions int, records map[string]string, held func(p int) bool) *version.Handle {
	t.Helper()
	set := version.NewSet("db")
	v := version.New(version.Info{DB: "db", Content: of(name), Partitions: partitions, Partitioner: shard.String, Following: version.Solo{}})
	versions.Put(t, v, records, held)
	set.Prepare(v)
	h := set.AcquireVersion(name, of(name).Code())
	t.Cleanup(func() {
		h.Release()
		versions.Close(t, set, of(name).Input)
	})
	return h
}

// What is measured of random versions is what a model counts.
func TestMeasure(t *testing.T) {
	all := func(int) bool { return true }
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		old, now := map[string]string{}, map[string]string{}
		n := rnd.IntN(400)
		for i := range n {
			k := fmt.Sprint("key-", i)
			old[k] = "v"
			if rnd.IntN(4) > 0 {
				now[k] = strings.Repeat("x", rnd.IntN(50))
			}
		}
		parts, oldParts := 1+rnd.IntN(5), 1+rnd.IntN(5)
		held, oldHeld := func(p int) bool { return p%2 == 0 }, func(p int) bool { return p%3 != 1 }
		if rnd.IntN(2) == 0 {
			held, oldHeld = all, all
		}
		h, served := open(t, "2", parts, now, held), open(t, "1", oldParts, old, oldHeld)
		rules := gate.Rules{MaxMissing: 0.1, Required: []gate.Required{{Key: "key-0"}, {Key: "key-1", Value: regexp.MustCompile("^x{3,}$")}}}
		m := gate.Measure(t.Context(), h, served, rules)
		if m.Err != nil {
			t.Fatal(m.Err)
		}
		want := gate.Measures{}
		for p := range parts {
			want.Held = append(want.Held, held(p))
		}
		for k := range old {
			if oldHeld(shard.String.Partition([]byte(k), oldParts)) && held(shard.String.Partition([]byte(k), parts)) {
				want.Sample.Keys++ // all keys are in the sample: the partitions have few pages
				if _, found := now[k]; !found {
					want.Sample.Missing++
				}
			}
		}
		for _, k := range []string{"key-0", "key-1"} {
			if v, found := now[k]; held(shard.String.Partition([]byte(k), parts)) && (!found || k == "key-1" && len(v) < 3) {
				want.Failed = append(want.Failed, k)
			}
		}
		if !slices.Equal(m.Held, want.Held) || m.Sample != want.Sample || m.Against != of("1") || m.Rules != rules.Fingerprint() || len(m.Failed) != len(want.Failed) {
			t.Errorf("seed %d: %+v, want %+v", seed, m, want)
		}
	}
}

// A sample of a large partition is bounded, and close to the truth.
func TestSampleOfMany(t *testing.T) {
	old, now := map[string]string{}, map[string]string{}
	for i := range 50_000 {
		k := fmt.Sprintf("key-%d", i)
		old[k] = "v"
		if i%10 > 0 {
			now[k] = "v"
		}
	}
	all := func(int) bool { return true }
	m := gate.Measure(t.Context(), open(t, "2", 2, now, all), open(t, "1", 2, old, all), gate.Rules{MaxMissing: 0.5})
	if m.Err != nil {
		t.Fatal(m.Err)
	}
	share := float64(m.Sample.Missing) / float64(m.Sample.Keys)
	if m.Sample.Keys < 900 || m.Sample.Keys > 1000 || share < 0.06 || share > 0.14 {
		t.Errorf("%+v: %f", m.Sample, share)
	}
	empty := gate.Measure(t.Context(), open(t, "3", 0, nil, all), open(t, "1", 2, old, all), gate.Rules{MaxMissing: 0.5, Required: []gate.Required{{Key: "a"}}})
	if empty.Err != nil || empty.Sample.Keys != m.Sample.Keys || empty.Sample.Missing != m.Sample.Keys || len(empty.Failed) != 1 {
		t.Errorf("of an empty version: %+v", empty)
	}
}

// damage changes the first page of a block in place, which its reader sees.
func damage(t *testing.T, h *version.Handle, p int) {
	t.Helper()
	path := h.Block(p).(*blocks.Reader).Name()
	b, err := os.ReadFile(path)
	expect.NoError(t, err)
	b[3] ^= 1
	expect.NoError(t, os.WriteFile(path, b, 0o644))
}

// Damage of the version that is served makes the sample smaller. Damage of the other one is an error that names the
// partition, and what cannot be read is not taken for right.
func TestMeasureDamage(t *testing.T) {
	records := map[string]string{}
	for i := range 100 {
		records[fmt.Sprint(i)] = "v"
	}
	all := func(int) bool { return true }
	rules := gate.Rules{MaxMissing: 0.5, Required: []gate.Required{{Key: "7"}}}
	served, h := open(t, "1", 2, records, all), open(t, "2", 2, records, all)
	damage(t, served, 0)
	m := gate.Measure(t.Context(), h, served, rules)
	if m.Err != nil || m.Sample.Keys == 0 || m.Sample.Keys == 100 || m.Sample.Missing != 0 || len(m.Failed) != 0 {
		t.Errorf("a damaged version that is served: %+v", m)
	}
	h = open(t, "3", 2, records, all) // no page of it has been read, and is known to be good
	damage(t, h, h.Partition([]byte("7")))
	m = gate.Measure(t.Context(), h, served, rules)
	if !blocks.IsDamage(m.Err) || !strings.Contains(m.Err.Error(), fmt.Sprintf("partition %d: ", h.Partition([]byte("7")))) || len(m.Failed) != 0 {
		t.Errorf("a damaged version: %+v", m)
	}
	held := []bool{true, true}
	if m.IsCurrent(held, rules, of("1")) {
		t.Errorf("it is taken for right: %+v", m)
	}
	v := gate.Judge(gate.Facts{Rules: rules, Held: held, Own: &m, Known: true, Served: of("1"), Totals: &store.Totals{Records: 100, Bytes: 300}})
	if v.State != store.Pending || !strings.Contains(v.Reason, "cannot be read, and are read again: partition") {
		t.Errorf("%+v", v)
	}
}

// What is measured when the context ends is not complete.
func TestMeasureCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := open(t, "1", 3, map[string]string{"a": "1"}, func(int) bool { return true })
	if m := gate.Measure(ctx, h, nil, gate.Rules{}); m.Err != context.Canceled {
		t.Error(m.Err)
	}
}

// Measures are made again for other partitions, other rules, and, if a rule needs a sample, another content that is served.
func TestIsCurrent(t *testing.T) {
	rules, samples := gate.Rules{MinRecords: 1}, gate.Rules{MaxMissing: 0.1}
	all, one := []bool{true, true}, []bool{true, false}
	m := func(r gate.Rules, against content.Content) *gate.Measures {
		return &gate.Measures{Held: one, Rules: r.Fingerprint(), Against: against}
	}
	for name, test := range map[string]struct {
		m      *gate.Measures
		held   []bool
		rules  gate.Rules
		served content.Content
		want   bool
	}{
		"none":                    {nil, one, rules, of("1"), false},
		"good":                    {m(rules, content.Content{}), one, rules, of("1"), true},
		"another partition":       {m(rules, content.Content{}), all, rules, of("1"), false},
		"another number of them":  {m(rules, content.Content{}), all[:1], rules, of("1"), false},
		"other rules":             {m(rules, content.Content{}), one, gate.Rules{MinRecords: 2}, of("1"), false},
		"sample":                  {m(samples, of("1")), one, samples, of("1"), true},
		"sample of another":       {m(samples, of("1")), one, samples, of("2"), false},
		"none is needed":          {m(samples, of("1")), one, samples, content.Content{}, true},
		"sample of other content": {m(samples, content.Content{Input: of("1").Input, Division: content.Sum("x")}), one, samples, of("1"), false},
	} {
		if got := test.m.IsCurrent(test.held, test.rules, test.served); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A report has the figures that the node has, and the sample only of what it serves.
func TestNewReport(t *testing.T) {
	rules := gate.Rules{MaxMissing: 0.1}
	m := &gate.Measures{Held: []bool{false, true, false, true}, Rules: rules.Fingerprint(), Sample: report.Sample{Keys: 9}, Against: of("1")}
	finding := store.Finding{State: store.Held, Reason: "r"}
	blocks := map[int]report.Figures{1: {Records: 1}, 3: {Records: 2}}
	r := gate.NewReport(of("1"), rules, blocks, m, finding)
	if !maps.Equal(r.Blocks, blocks) || r.Sample != m.Sample || r.Finding != finding || r.Rules != rules.Fingerprint() {
		t.Errorf("%+v", r)
	}
	r = gate.NewReport(of("2"), gate.Rules{}, blocks, m, store.Finding{})
	if r.Sample != (report.Sample{}) || len(r.Blocks) != 2 || r.Finding.State != store.Passed {
		t.Errorf("%+v", r)
	}
	if r := gate.NewReport(content.Content{}, rules, nil, nil, finding); r.Blocks != nil {
		t.Errorf("%+v", r)
	}
}
