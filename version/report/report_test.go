package report_test

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"sequins/store"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/version/report"
)

// blocksOf returns usual figures of n partitions, with gaps between their numbers.
func blocksOf(n int) map[int]report.Figures {
	all := make(map[int]report.Figures)
	for p := range n {
		all[p*3] = report.Figures{Records: 1 << 27, Bytes: 1 << 35}
	}
	return all
}

func encode(t testing.TB, r report.Report) []byte {
	t.Helper()
	data, err := r.Encode()
	expect.NoError(t, err)
	return data
}

// A report that is encoded is parsed as it was.
func TestReport(t *testing.T) {
	for _, r := range []report.Report{
		{Finding: store.Finding{State: store.Passed}, Blocks: map[int]report.Figures{}},
		{Rules: "r", Finding: store.Finding{State: store.Held, Reason: "too\nfew", Rules: "r", Against: contents.Of("1"), Vetoed: true}, Served: contents.Of("1"), Loading: true,
			Sample: report.Sample{Keys: 10, Missing: 3}, Rejected: []store.Verdict{{Content: contents.Of("2"), Finding: store.Finding{State: store.Held, Rules: "r", Against: contents.Of("1")}}}, Blocks: map[int]report.Figures{0: {Records: 1, Bytes: 2}, 1: {}, 4000: {Records: 1 << 41, Bytes: 1 << 40}}},
	} {
		if got, err := report.Parse(encode(t, r)); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v; want %+v", got, err, r)
		}
	}
}

// A node can report as many partitions as the comment of MaxReport promises, and says so if it has more. Figures come before rejected inputs.
func TestLargeReport(t *testing.T) {
	r := report.Report{Rules: strings.Repeat("f", 16), Served: contents.Of(strings.Repeat("v", 255)), Blocks: blocksOf(4000),
		Finding: store.Finding{State: store.Held, Reason: strings.Repeat("é", store.MaxReason), Rules: strings.Repeat("f", 16), Against: contents.Of(strings.Repeat("v", 255))}}
	if got, err := report.Parse(encode(t, r)); err != nil || len(got.Blocks) != 4000 || len(got.Finding.Reason) != store.MaxReason {
		t.Errorf("%d partitions, %v", len(got.Blocks), err)
	}
	for range 100 {
		r.Rejected = append(r.Rejected, store.Verdict{Content: contents.Of(strings.Repeat("v", 255))})
	}
	if got, err := report.Parse(encode(t, r)); err != nil || len(got.Blocks) != 4000 || got.Rejected != nil {
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
		`"` + strings.Repeat("x", report.MaxSize) + `"`: "more than the limit",
	} {
		if _, err := report.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	if _, err := report.Parse([]byte(good + uvarints(0, 1, 1))); err != nil {
		t.Error(err)
	}
}

// Totals are sums over all partitions, each counted once: of this node, or else of another one.
func TestSum(t *testing.T) {
	own := map[int]report.Figures{0: {Records: 1, Bytes: 10, Largest: 5}}
	reports := map[string]report.Report{"a": {Blocks: map[int]report.Figures{0: {Records: 1, Bytes: 10}, 1: {Records: 20, Bytes: 200}, 1<<31 - 1: {Records: 7, Bytes: 70}}},
		"b": {Blocks: map[int]report.Figures{1: {Records: 20, Bytes: 200}, 3: {Records: 300, Bytes: 3000}}}}
	if got, unknown := report.Sum(4, own, reports); got != (report.Figures{Records: 321, Bytes: 3210, Largest: 5}) || !reflect.DeepEqual(unknown, []int{2}) {
		t.Errorf("%+v, %v", got, unknown)
	}
	if got, unknown := report.Sum(0, nil, reports); got != (report.Figures{}) || unknown != nil {
		t.Errorf("an empty content: %+v, %v", got, unknown)
	}
	if _, unknown := report.Sum(2, nil, nil); len(unknown) != 2 {
		t.Errorf("%v", unknown)
	}
}
