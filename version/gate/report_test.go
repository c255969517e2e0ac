package gate_test

import (
	"encoding/binary"
	"maps"
	"reflect"
	"strings"
	"testing"

	"sequins/internal/content"
	"sequins/store"
	"sequins/version/gate"
)

// blocksOf returns so many partitions with gaps, with figures of usual sizes.
func blocksOf(n int) map[int]gate.Figures {
	all := make(map[int]gate.Figures)
	for p := range n {
		all[p*3] = gate.Figures{Records: 1 << 27, Bytes: 1 << 35}
	}
	return all
}

func encode(t testing.TB, r gate.Report) []byte {
	t.Helper()
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A report that is encoded is parsed as it was.
func TestReport(t *testing.T) {
	for _, r := range []gate.Report{
		{Finding: gate.Finding{State: gate.Passed}, Blocks: map[int]gate.Figures{}},
		{Rules: "r", Finding: gate.Finding{State: gate.Held, Reason: "too\nfew", Rules: "r", Against: of("1"), Vetoed: true}, Served: of("1"), Loading: true,
			Sample: gate.Sample{Keys: 10, Missing: 3}, Rejected: []store.Verdict{{Content: of("2"), Finding: gate.Finding{State: gate.Held, Rules: "r", Against: of("1")}}}, Blocks: map[int]gate.Figures{0: {Records: 1, Bytes: 2}, 1: {}, 4000: {Records: 1 << 41, Bytes: 1 << 40}}},
	} {
		if got, err := gate.ParseReport(encode(t, r)); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v; want %+v", got, err, r)
		}
	}
}

// A report has the figures that the node has, and the sample only of what it serves.
func TestNewReport(t *testing.T) {
	rules := gate.Rules{MaxMissing: 0.1}
	m := &gate.Measures{Held: []bool{false, true, false, true}, Rules: rules.Fingerprint(), Sample: gate.Sample{Keys: 9}, Against: of("1")}
	finding := gate.Finding{State: gate.Held, Reason: "r"}
	blocks := map[int]gate.Figures{1: {Records: 1}, 3: {Records: 2}}
	r := gate.NewReport(of("1"), rules, blocks, m, finding)
	if !maps.Equal(r.Blocks, blocks) || r.Sample != m.Sample || r.Finding != finding || r.Rules != rules.Fingerprint() {
		t.Errorf("%+v", r)
	}
	r = gate.NewReport(of("2"), gate.Rules{}, blocks, m, gate.Finding{})
	if r.Sample != (gate.Sample{}) || len(r.Blocks) != 2 || r.Finding.State != gate.Passed {
		t.Errorf("%+v", r)
	}
	if r := gate.NewReport(content.Content{}, rules, nil, nil, finding); r.Blocks != nil {
		t.Errorf("%+v", r)
	}
}

// A node can report as many partitions as the comment of MaxReport promises, and says so if it has more. Figures come before rejected inputs.
func TestLargeReport(t *testing.T) {
	r := gate.Report{Rules: strings.Repeat("f", 16), Served: of(strings.Repeat("v", 255)), Blocks: blocksOf(4000),
		Finding: gate.Finding{State: gate.Held, Reason: strings.Repeat("é", store.MaxReason), Rules: strings.Repeat("f", 16), Against: of(strings.Repeat("v", 255))}}
	if got, err := gate.ParseReport(encode(t, r)); err != nil || len(got.Blocks) != 4000 || len(got.Finding.Reason) != store.MaxReason {
		t.Errorf("%d partitions, %v", len(got.Blocks), err)
	}
	for range 100 {
		r.Rejected = append(r.Rejected, store.Verdict{Content: of(strings.Repeat("v", 255))})
	}
	if got, err := gate.ParseReport(encode(t, r)); err != nil || len(got.Blocks) != 4000 || got.Rejected != nil {
		t.Errorf("%d partitions, %d rejected, %v", len(got.Blocks), len(got.Rejected), err)
	}
	r.Blocks = blocksOf(14_000)
	if _, err := r.Encode(); err == nil || !strings.Contains(err.Error(), "so many partitions") {
		t.Errorf("a report that no znode has room for: %v", err)
	}
}

func TestParseReportErrors(t *testing.T) {
	const good = `{"finding":{"state":"held"}}` + "\n"
	uvarints := func(all ...uint64) (b string) {
		for _, n := range all {
			b += string(binary.AppendUvarint(nil, n))
		}
		return b
	}
	for text, want := range map[string]string{
		``: "unexpected end", `{`: "unexpected end", `{"finding":{"state":"good"}}`: `unknown state "good"`, `{}`: `unknown state ""`,
		`{"finding":{"state":"pending"},"rejected":[{"state":"passed","vetoed":true}]}`:                `unknown state "passed"`,
		`{"finding":{"state":"pending"},"rejected":[{"state":"held","against":{"name":"../../etc"}}]}`: "a content that is none",
		`{"finding":{"state":"passed","vetoed":true}}`:                                                 "a veto with state",
		`{"finding":{"state":"held"},"sample":{"keys":1,"missing":2}}`:                                 "impossible sample",
		`{"finding":{"state":"held"},"sample":{"keys":-1}}`:                                            "impossible sample",
		`{"finding":{"state":"held"},"served":{"Name":"1"}}`:                                           "a content that is none",
		`{"finding":{"state":"held","against":{"Name":"1","Hash":"../"}}}`:                             "a content that is none",
		good + uvarints(0, 1):                           "cannot be read",
		good + uvarints(0, 1, 1<<43):                    "cannot be read",
		good + uvarints(0, 1, 1) + "\xff":               "cannot be read",
		good + uvarints(1<<31, 0, 0):                    "figures of partition",
		good + uvarints(1<<31-1, 0, 0, 0, 0, 0):         "figures of partition",
		`"` + strings.Repeat("x", gate.MaxReport) + `"`: "more than the limit",
	} {
		if _, err := gate.ParseReport([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	if _, err := gate.ParseReport([]byte(good + uvarints(0, 1, 1))); err != nil {
		t.Error(err)
	}
}

// A report that cannot be parsed is left out.
func TestParseReports(t *testing.T) {
	data := map[string][]byte{"a": encode(t, gate.Report{Finding: gate.Finding{State: gate.Held}, Blocks: blocksOf(2)}), "b": []byte("{")}
	if got := gate.ParseReports(data); len(got) != 1 || len(got["a"].Blocks) != 2 {
		t.Errorf("%+v", got)
	}
}

// Totals are sums over all partitions, each counted once: of this node, or else of another one.
func TestSum(t *testing.T) {
	own := map[int]gate.Figures{0: {Records: 1, Bytes: 10, Largest: 5}}
	reports := map[string]gate.Report{"a": {Blocks: map[int]gate.Figures{0: {Records: 1, Bytes: 10}, 1: {Records: 20, Bytes: 200}, 1<<31 - 1: {Records: 7, Bytes: 70}}},
		"b": {Blocks: map[int]gate.Figures{1: {Records: 20, Bytes: 200}, 3: {Records: 300, Bytes: 3000}}}}
	if got, unknown := gate.Sum(4, own, reports); got != (gate.Figures{Records: 321, Bytes: 3210, Largest: 5}) || !reflect.DeepEqual(unknown, []int{2}) {
		t.Errorf("%+v, %v", got, unknown)
	}
	if got, unknown := gate.Sum(0, nil, reports); got != (gate.Figures{}) || unknown != nil {
		t.Errorf("an empty content: %+v, %v", got, unknown)
	}
	if _, unknown := gate.Sum(2, nil, nil); len(unknown) != 2 {
		t.Errorf("%v", unknown)
	}
}

// FuzzParseReport: a report that is accepted has figures that can be added without overflow, can be judged, and is
// the same after encoding.
func FuzzParseReport(f *testing.F) {
	f.Add(encode(f, gate.Report{Rules: shrink.Fingerprint(), Finding: gate.Finding{State: gate.Pending}, Served: of("20"), Sample: gate.Sample{Keys: 9, Missing: 1}, Blocks: blocksOf(3)}))
	f.Add(encode(f, gate.Report{Finding: gate.Finding{State: gate.Held, Rules: shrink.Fingerprint(), Against: of("2"), Vetoed: true}}))
	f.Add([]byte(`{"finding":{"state":"held","reason":"\u0000\ud800"}}` + "\n\x01\x02\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := gate.ParseReport(data)
		if err != nil {
			return
		}
		const most = 1 << 42
		for p, b := range r.Blocks {
			if p < 0 || min(b.Records, b.Bytes) < 0 || max(b.Records, b.Bytes) > most {
				t.Fatalf("%d: %+v", p, b)
			}
		}
		if v := gate.Judge(judging(good, r)); r.Finding.Vetoed && r.Finding.Rules == shrink.Fingerprint() && v.State != gate.Held {
			t.Fatalf("%+v", v)
		}
		again, err := r.Encode()
		if err != nil {
			if len(data) < gate.MaxReport/8 {
				t.Fatal(err)
			}
			return // what JSON escapes can be longer than it was
		}
		if got, err := gate.ParseReport(again); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%+v, %v, want %+v", got, err, r)
		}
	})
}
