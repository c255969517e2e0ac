package gate

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// A report that is encoded is parsed as it was.
func TestReport(t *testing.T) {
	r := Report{Plan: "p", State: Held, Judge: true, Reason: "too few", Sample: Sample{10, 3},
		partitions: []figures{{0, Totals{1, 2}}, {1, Totals{0, 0}}, {4000, Totals{1 << 41, 1 << 40}}}}
	data, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseReport(data)
	if r.Figures = got.Figures; err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v; want %+v", got, err, r)
	}
}

// A node can report as many partitions as the comment of MaxReport promises, and says so if it has more.
func TestLargeReport(t *testing.T) {
	r := Report{Plan: strings.Repeat("f", 16), State: Held, Reason: strings.Repeat("é", maxReason)}
	for p := range 4000 {
		r.partitions = append(r.partitions, figures{p * 3, Totals{1 << 27, 1 << 35}})
	}
	data, err := r.encode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	if got, err := parseReport(data); err != nil || len(got.partitions) != 4000 || len(got.Reason) > maxReason {
		t.Errorf("%d partitions, %v", len(got.partitions), err)
	}
	for p := range 10_000 {
		r.partitions = append(r.partitions, figures{12_000 + p, Totals{1 << 27, 1 << 35}})
	}
	if _, err := r.encode(); err == nil {
		t.Error("a report that no znode has room for")
	}
}

func TestParseReportErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "unexpected end", `{"state":"good"}`: `unknown state "good"`,
		`{"state":"held","sample":{"keys":1,"missing":2}}`: "impossible sample",
		`{"state":"held","sample":{"keys":-1}}`:            "impossible sample",
		`{"state":"held","figures":"gICAgICAgICAgIA="}`:    "cannot be read",
		`{"state":"held","figures":"AAA="}`:                "cannot be read",
		`{"state":"held","figures":"gICAgBAAAA=="}`:        "figures of partition",
		`"` + strings.Repeat("x", MaxReport) + `"`:         "more than the limit",
	} {
		if _, err := parseReport([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// FuzzParseReport: a report that is accepted has figures in ascending order that can be added without overflow, and is
// the same after encoding.
func FuzzParseReport(f *testing.F) {
	seed, err := Report{Plan: "p", State: Pending, Sample: Sample{9, 1}, partitions: []figures{{1, Totals{5, 6}}, {7, Totals{8, 9}}}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"state":"held","figures":"AQIDBAUG","reason":"\u0000\ud800"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseReport(data)
		if err != nil {
			return
		}
		last := -1
		for _, p := range r.partitions {
			if p.partition <= last || p.Records < 0 || p.Bytes < 0 || p.Records > maxFigure || p.Bytes > maxFigure {
				t.Fatalf("%+v", p)
			}
			last = p.partition
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		again := r
		again.Figures = nil
		b, err := again.encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseReport(b); err != nil || !reflect.DeepEqual(got.partitions, r.partitions) || got.Sample != r.Sample || got.State != r.State {
			t.Fatalf("%+v, %v, want %+v", got, err, r)
		}
	})
}
