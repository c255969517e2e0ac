package checker

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// batch returns a correct batch of the keys a, b, c and d.
func batch(start int, version string) Read {
	return read(start, version).with(func(r *Read) {
		r.Op, r.Key, r.Body, r.Inside = Batch, "", "", version
		r.Keys = []string{"a", "b", "c", "d"}
		r.Values = valuesOf(r.Keys, version)
	})
}

// within returns a correct answer to a request for a range.
func within(start int, version string, b Bounds) Read {
	c := check{Rules: rules, sorted: map[string][]string{}}
	return read(start, version).with(func(r *Read) {
		r.Op, r.Key, r.Body, r.Bounds = Range, "", "", b
		r.Keys = slices.Clone(c.within(b, version))
		if b.Limit > 0 && len(r.Keys) > b.Limit {
			r.Keys, r.More = r.Keys[:b.Limit], true
		}
		if !b.KeysOnly {
			r.Values = valuesOf(r.Keys, version)
		}
	})
}

func valuesOf(keys []string, version string) []*string {
	values := make([]*string, len(keys))
	for i, key := range keys {
		if v, there := rules.Value(key, version); there {
			values[i] = &v
		}
	}
	return values
}

func count(start int, version string, b Bounds, total int) Read {
	return read(start, version).with(func(r *Read) { r.Op, r.Key, r.Body, r.Bounds, r.Total = Count, "", "", b, total })
}

// put returns a change of one value.
func put(i int, value string) func(*Read) {
	return func(r *Read) {
		r.Values = slices.Clone(r.Values)
		r.Values[i] = &value
	}
}

func drop(i int) func(*Read) {
	return func(r *Read) {
		r.Values = slices.Clone(r.Values)
		r.Values[i] = nil
	}
}

// lose returns a change that removes a whole record.
func lose(i int) func(*Read) {
	return func(r *Read) {
		r.Keys = slices.Delete(slices.Clone(r.Keys), i, i+1)
		r.Values = slices.Delete(slices.Clone(r.Values), i, i+1)
	}
}

// TestBatches checks batches, most of which are wrong.
func TestBatches(t *testing.T) {
	for _, h := range []history{
		{"right", nil, []Read{batch(110, "v1"), batch(220, "v2"), batch(230, "v3")}, ""},
		{"repeated keys", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Keys[3] = "a"; r.Values[3] = r.Values[0] })}, ""},
		{"no keys", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Keys, r.Values = nil, nil })}, ""},

		{"one value of an older version", nil, []Read{batch(220, "v2").with(put(1, "v1/b"))}, "wrong answer"},
		{"one value of a newer version", nil, []Read{batch(220, "v2").with(put(0, "v3/a"))}, "wrong answer"},
		{"a key that only another version has", nil, []Read{batch(220, "v3").with(put(2, "v2/c"))}, "wrong answer"},
		{"a key that no version has", nil, []Read{batch(220, "v2").with(put(3, ""))}, "wrong answer"},
		{"a key is missing", nil, []Read{batch(220, "v2").with(drop(2))}, "wrong answer"},
		{"an empty value", nil, []Read{batch(220, "v2").with(put(0, ""))}, "wrong answer"},
		{"one value too few", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Values = r.Values[:3] })}, "wrong answer"},
		{"one value too many", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Values = append(r.Values, nil) })}, "wrong answer"},
		{"no values", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Values = nil })}, "wrong answer"},
		{"exchanged values", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Values[0], r.Values[1] = r.Values[1], r.Values[0] })}, "wrong answer"},
		{"another version in the body", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Inside = "v1" })}, "wrong answer"},
		{"no version", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Version = "" })}, "wrong answer"},
		{"half an answer", nil, []Read{batch(220, "v2").with(func(r *Read) { r.Err = "unexpected end of JSON input" })}, "wrong answer"},
		{"404", nil, []Read{batch(220, "v2").with(status(404))}, "error status"},
		{"502", nil, []Read{batch(220, "v2").with(status(502))}, "error status"},
		{"back in a batch", nil, []Read{read(210, "v3"), batch(220, "v2")}, "went back"},
		{"back from a batch", nil, []Read{batch(210, "v3"), read(220, "v2")}, "went back"},
		{"back from a batch of absent keys", nil, []Read{batch(210, "v3").with(func(r *Read) { r.Keys, r.Values = r.Keys[2:], r.Values[2:] }), read(220, "v2")}, "went back"},
	} {
		h.check(t)
	}
}

// TestRanges checks ranges and counts, most of which are wrong.
func TestRanges(t *testing.T) {
	all := Bounds{}
	for _, h := range []history{
		{"right", nil, []Read{within(110, "v1", all), within(220, "v2", all), within(230, "v3", all)}, ""},
		{"with bounds", nil, []Read{within(220, "v2", Bounds{From: "aa", Until: "c"}), within(220, "v2", Bounds{Prefix: "c"}), within(220, "v2", Bounds{Prefix: "x"})}, ""},
		{"pages", nil, []Read{within(220, "v2", Bounds{Limit: 2}), within(225, "v2", Bounds{Limit: 2, After: "b"}), within(230, "v2", Bounds{Limit: 1, After: "c"})}, ""},
		{"keys", nil, []Read{within(220, "v2", Bounds{KeysOnly: true})}, ""},
		{"counts", nil, []Read{count(220, "v2", all, 3), count(222, "v2", Bounds{Prefix: "b"}, 1), count(230, "v3", all, 2), count(232, "v3", Bounds{From: "z"}, 0)}, ""},

		{"a missing record", nil, []Read{within(220, "v2", all).with(lose(1))}, "wrong answer"},
		{"the last one is missing", nil, []Read{within(220, "v2", all).with(lose(2))}, "wrong answer"},
		{"a missing key", nil, []Read{within(220, "v2", Bounds{KeysOnly: true}).with(func(r *Read) { r.Keys = r.Keys[1:] })}, "wrong answer"},
		{"a record twice", nil, []Read{within(220, "v2", all).with(func(r *Read) {
			r.Keys, r.Values = append(r.Keys[:2], r.Keys[1:]...), append(r.Values[:2], r.Values[1:]...)
		})}, "wrong answer"},
		{"another version's keys", nil, []Read{within(230, "v3", all).with(func(r *Read) { r.Keys, r.Values = append(r.Keys, "c"), append(r.Values, &r.Version) })}, "wrong answer"},
		{"another version's value", nil, []Read{within(220, "v2", all).with(put(1, "v1/b"))}, "wrong answer"},
		{"a key without its value", nil, []Read{within(220, "v2", all).with(drop(1))}, "wrong answer"},
		{"one value too few", nil, []Read{within(220, "v2", all).with(func(r *Read) { r.Values = r.Values[:2] })}, "wrong answer"},
		{"not in order", nil, []Read{within(220, "v2", all).with(func(r *Read) { slices.Reverse(r.Keys); slices.Reverse(r.Values) })}, "wrong answer"},
		{"beyond the limit", nil, []Read{within(220, "v2", all).with(func(r *Read) { r.Limit = 2 })}, "wrong answer"},
		{"less than the limit", nil, []Read{within(220, "v2", Bounds{Limit: 2}).with(lose(1))}, "wrong answer"},
		{"it goes on and does not say so", nil, []Read{within(220, "v2", Bounds{Limit: 2}).with(func(r *Read) { r.More = false })}, "wrong answer"},
		{"it says that it goes on", nil, []Read{within(220, "v2", all).with(func(r *Read) { r.More = true })}, "wrong answer"},
		{"a gap between pages", nil, []Read{within(220, "v2", Bounds{Limit: 1}), within(225, "v2", Bounds{After: "b"}).with(func(r *Read) { r.After = "a" })}, "wrong answer"},
		{"a record on two pages", nil, []Read{within(220, "v2", Bounds{Limit: 1}), within(225, "v2", all).with(func(r *Read) { r.After = "a" })}, "wrong answer"},
		{"a record below the range", nil, []Read{within(220, "v2", all).with(func(r *Read) { r.From = "b" })}, "wrong answer"},
		{"a record above the range", nil, []Read{within(220, "v2", all).with(func(r *Read) { r.Until = "c" })}, "wrong answer"},
		{"the next page is another version's", nil, []Read{within(235, "v3", Bounds{After: "a"}).with(func(r *Read) { r.Exact = "v2" })}, "wrong answer"},
		{"one too few counted", nil, []Read{count(220, "v2", all, 2)}, "wrong answer"},
		{"another version counted", nil, []Read{count(220, "v3", all, 3)}, "wrong answer"},
		{"back in a range", nil, []Read{read(210, "v3"), within(220, "v2", all), count(225, "v2", all, 3)}, "went back, went back"},

		{"a cursor that has expired", nil, []Read{read(210, "v3"), within(220, "v2", Bounds{After: "a"}).with(status(410)).with(exactly("v2"))}, ""},
		{"410 without a cursor", nil, []Read{within(220, "v2", all).with(status(410))}, "error status"},
		{"412 for a cursor", nil, []Read{read(210, "v3"), within(220, "v2", Bounds{After: "a"}).with(status(412)).with(exactly("v2"))}, "error status"},
		{"410 while the version is served", nil,
			[]Read{read(210, "v2"), within(220, "v2", Bounds{After: "a"}).with(status(410)).with(exactly("v2")), read(230, "v2")}, "refusal"},
		{"a cursor of a version that the node does not serve yet", nil,
			[]Read{read(210, "v1"), within(220, "v2", Bounds{After: "a"}).with(status(503)).with(exactly("v2")).with(atLeast("v2")), read(230, "v2")}, ""},
		{"that it does", nil,
			[]Read{read(210, "v2"), within(220, "v2", Bounds{After: "a"}).with(status(503)).with(exactly("v2")).with(atLeast("v2")), read(230, "v2")}, "refusal"},
		{"late", nil, []Read{within(220, "v2", all).with(slow), count(220, "v2", all, 3).with(slow)}, "late answer, late answer"},
		{"not late for a range", nil, []Read{within(220, "v2", all).with(func(r *Read) { r.End = r.Start + 110*ms })}, ""},
		{"broken off", nil, []Read{within(220, "v2", all).with(lost)}, "no answer"},
		{"broken off while nodes are missing", []Event{at(215, Unsafe, "n")}, []Read{within(220, "v2", all).with(lost)}, ""},
	} {
		h.check(t)
	}
}

// TestCheckFindsSpoiltBatches: a random change of one value, of the number of values or of the version of a correct
// batch or range is found.
func TestCheckFindsSpoiltBatches(t *testing.T) {
	changes := map[string]func(r *Read, i int){
		"a value of another version": func(r *Read, i int) { other := "v9/" + r.Keys[i]; r.Values[i] = &other },
		"presence":                   invert,
		"the number of values":       func(r *Read, i int) { r.Values = slices.Delete(r.Values, i, i+1) },
		"the version":                func(r *Read, _ int) { r.Version = map[string]string{"v1": "v2", "v2": "v3", "v3": "v2"}[r.Version] },
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		h := &History{Events: published}
		for i := range 30 {
			version := published[i/10].Version
			r := batch(300+10*i, version)
			if i%2 == 0 {
				r = within(300+10*i, version, Bounds{From: string(rune('a' + rng.IntN(2))), Limit: rng.IntN(4)})
			}
			h.Reads = append(h.Reads, r)
		}
		sane := rules
		sane.Nodes = []string{"n"}
		if found := Check(h, sane); len(found) != 0 {
			t.Fatalf("seed %d: %v", seed, found)
		}
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			i := rng.IntN(len(h.Reads))
			spoilt := &History{Events: h.Events, Reads: slices.Clone(h.Reads)}
			r := &spoilt.Reads[i]
			r.Values = slices.Clone(r.Values)
			changes[name](r, rng.IntN(len(r.Values)))
			if found := Check(spoilt, sane); len(found) == 0 || found[0].Rule != wrongAnswer || !strings.Contains(found[0].String(), r.asked()) {
				t.Errorf("seed %d, read %d, %s: %v", seed, i, name, found)
			}
		}
	}
}

// invert removes a value, or adds one.
func invert(r *Read, i int) {
	if r.Values[i] != nil {
		r.Values[i] = nil
		return
	}
	value := r.Version + "/" + r.Keys[i]
	r.Values[i] = &value
}

// TestContents checks answers from a version whose files were replaced after 100 ms.
func TestContents(t *testing.T) {
	two := rules
	two.Contents = func(version string) []string {
		if version == "v1" {
			return []string{"v1", "other-1"}
		}
		return []string{version}
	}
	other := func(r *Read) { r.Body = strings.Replace(r.Body, "v1/", "other-1/", 1) }
	replaced := []Event{of(100, Publish, "other-1")}
	text := func(s string) *string { return &s }
	values := func(a, b string) func(*Read) {
		return func(r *Read) {
			r.Op, r.Key, r.Body, r.Keys, r.Values = Batch, "", "", []string{"a", "b"}, []*string{text(a), text(b)}
		}
	}
	gone := read(150, "").with(status(410)).with(exactly("v1")).with(func(r *Read) { r.After = "a" })
	for _, h := range []history{
		{"either", replaced, []Read{read(10, "v1"), read(110, "v1").with(other), read(120, "v1")}, ""},
		{"the second before it is there", replaced, []Read{read(10, "v1").with(other)}, "wrong answer"},
		{"a third", replaced, []Read{read(110, "v1").with(func(r *Read) { r.Body = "third-1/a" })}, "wrong answer"},
		{"a batch of the second", replaced, []Read{read(110, "v1").with(values("other-1/a", "other-1/b"))}, ""},
		{"a batch of both", replaced, []Read{read(110, "v1").with(values("v1/a", "other-1/b"))}, "wrong answer"},
		{"a key that both have is missing", replaced, []Read{read(110, "v1").with(func(r *Read) { r.Code, r.Body = 404, "" })}, "wrong answer"},
		{"a cursor of a content that comes", replaced, []Read{read(110, "v1"),
			read(150, "").with(status(503)).with(exactly("v1")).with(atLeast("v1")).with(func(r *Read) { r.After = "a" })}, ""},
		{"a cursor that has ended", replaced, []Read{read(110, "v1"), gone, read(160, "v1")}, ""},
	} {
		h.checkBy(t, two)
	}
	history{"a cursor that has not", nil, []Read{read(110, "v1"), gone, read(160, "v1")}, "refusal"}.check(t)
}
