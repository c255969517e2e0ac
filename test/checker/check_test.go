package checker

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

const ms = time.Millisecond

// rules are those of a cluster of two nodes, whose versions contain the keys a
// and b, and c if the version's name ends in an even digit.
var rules = Rules{
	Nodes: []string{"m", "n"},
	Value: func(key, version string) (string, bool) {
		there := key == "a" || key == "b" || key == "c" && (version[len(version)-1]-'0')%2 == 0
		return version + "/" + key, there
	},
	Keys: func(version string) []string {
		if (version[len(version)-1]-'0')%2 == 0 {
			return []string{"a", "b", "c"}
		}
		return []string{"a", "b"}
	},
	Patience: 100 * ms, RangePatience: 120 * ms, Convergence: 1000 * ms,
}

// read returns a correct read of a from node n that took 2 ms.
func read(start int, version string) Read {
	at := time.Duration(start) * ms
	return Read{Node: "n", Start: at, End: at + 2*ms, Key: "a", Code: 200, Version: version, Body: version + "/a"}
}

func (r Read) with(change func(*Read)) Read {
	change(&r)
	return r
}

func status(code int) func(*Read) {
	return func(r *Read) { r.Code, r.Version, r.Body = code, "", "no\n" }
}

func lost(r *Read) { r.Code, r.Version, r.Body, r.Err = 0, "", "", "connection refused" }

func slow(r *Read) { r.End = r.Start + 150*ms }

func at(when int, kind Kind, node string) Event {
	return Event{At: time.Duration(when) * ms, Kind: kind, Node: node}
}

func of(when int, kind Kind, version string) Event {
	return Event{At: time.Duration(when) * ms, Kind: kind, Version: version}
}

var published = []Event{of(0, Publish, "v1"), of(100, Publish, "v2"), of(200, Publish, "v3")}

// history is what was read after three versions were published.
type history struct {
	name   string
	events []Event
	reads  []Read
	want   string // the broken rules, in order
}

// check checks a history as a test of its own.
func (h history) check(t *testing.T) { h.checkBy(t, rules) }

func (h history) checkBy(t *testing.T, rules Rules) {
	t.Run(h.name, func(t *testing.T) {
		t.Helper()
		full := &History{Events: append(slices.Clone(published), h.events...), Reads: h.reads}
		var got []string
		for _, v := range Check(full, rules) {
			got = append(got, v.Rule)
			if v.Why == "" || !strings.HasPrefix(v.String(), v.Rule+": ") {
				t.Errorf("%+v does not say why", v)
			}
		}
		if s := strings.Join(got, ", "); s != h.want {
			t.Errorf("got %q, want %q\n%v", s, h.want, Check(full, rules))
		}
	})
}

// TestCheck checks histories that break the given rules.
func TestCheck(t *testing.T) {
	for _, h := range []history{
		{"nothing happens", nil, nil, ""},
		{"forward", nil, []Read{read(10, "v1"), read(110, "v1"), read(120, "v2"), read(300, "v3")}, ""},
		{"a version is left out", nil, []Read{read(10, "v1"), read(300, "v3")}, ""},

		{"back", nil, []Read{read(210, "v3"), read(220, "v2")}, "went back"},
		{"back in the order of sending, not of the list", nil, []Read{read(220, "v2"), read(210, "v3")}, "went back"},
		{"back across a restart", []Event{at(230, Down, "n"), at(240, Start, "n"), at(250, Up, "n")},
			[]Read{read(210, "v3"), read(300, "v2")}, "went back"},
		{"back for another client", nil,
			[]Read{read(210, "v3"), read(220, "v2").with(func(r *Read) { r.Client = 1 })}, "went back"},
		{"back in a 404", nil, []Read{read(210, "v3"), read(220, "v1").with(func(r *Read) { r.Code, r.Key = 404, "c" })}, "went back"},
		{"back from a 404", nil, []Read{read(210, "v3").with(func(r *Read) { r.Code, r.Key = 404, "c" }), read(220, "v1")}, "went back"},
		{"back while proxied", nil, []Read{read(210, "v3"), read(220, "v2").with(func(r *Read) { r.Peer = "m" })}, "went back"},
		{"at the same time is not before", nil, []Read{read(210, "v3"), read(211, "v2"), read(212, "v2")}, ""},
		{"a long read holds nothing up", nil,
			[]Read{read(210, "v1").with(func(r *Read) { r.End = 290 * ms }), read(220, "v3"), read(230, "v2")}, "went back"},
		{"every one that is behind", nil, []Read{read(210, "v3"), read(220, "v2"), read(230, "v1"), read(240, "v3")}, "went back, went back"},
		{"nodes need not agree", nil, []Read{read(210, "v3"), read(220, "v2").with(func(r *Read) { r.Node = "m" })}, ""},

		{"another version's value", nil, []Read{read(210, "v3").with(func(r *Read) { r.Body = "v2/a" })}, "wrong answer"},
		{"another key's value", nil, []Read{read(210, "v3").with(func(r *Read) { r.Body = "v3/b" })}, "wrong answer"},
		{"half a value", nil, []Read{read(210, "v3").with(func(r *Read) { r.Body = "v3" })}, "wrong answer"},
		{"404 for a key that exists", nil, []Read{read(210, "v3").with(func(r *Read) { r.Code, r.Body = 404, "no such key\n" })}, "wrong answer"},
		{"404 for one that does not", nil, []Read{read(210, "v3").with(func(r *Read) { r.Code, r.Key = 404, "c" })}, ""},
		{"200 for one that does not", nil, []Read{read(210, "v3").with(func(r *Read) { r.Key, r.Body = "c", "v3/c" })}, "wrong answer"},
		{"no version at all", nil, []Read{read(210, "v3").with(status(404))}, "wrong answer"},
		{"no version at all, after one", nil, []Read{read(210, "v3"), read(220, "").with(status(404))}, "wrong answer"},
		{"a version that nobody has published", nil, []Read{read(210, "v4")}, "wrong answer"},
		{"a version before it is published", nil, []Read{read(150, "v3")}, "wrong answer"},
		{"a version while it is published", nil, []Read{read(199, "v3")}, ""},

		{"502", nil, []Read{read(10, "").with(status(502))}, "error status"},
		{"500", nil, []Read{read(10, "").with(status(500))}, "error status"},
		{"a status of no kind", nil, []Read{read(10, "").with(status(301))}, "error status"},
		{"502 while nodes are missing", []Event{at(5, Unsafe, ""), at(20, Safe, "")}, []Read{read(10, "").with(status(502))}, ""},
		{"502 with a foot in that time", []Event{at(5, Unsafe, ""), at(20, Safe, "")}, []Read{read(4, "").with(status(502)), read(20, "").with(status(504))}, ""},
		{"502 after it", []Event{at(5, Unsafe, ""), at(20, Safe, "")}, []Read{read(21, "").with(status(502))}, "error status"},
		{"502 of the one that is alone", []Event{at(5, Unsafe, "n")}, []Read{read(10, "").with(status(502))}, ""},
		{"502 of another one", []Event{at(5, Unsafe, "m")}, []Read{read(10, "").with(status(502))}, "error status"},
		{"a wrong answer while nodes are missing", []Event{at(5, Unsafe, "")}, []Read{read(210, "v3").with(func(r *Read) { r.Body = "v2/a" })}, "wrong answer"},
		{"301 while nodes are missing", []Event{at(5, Unsafe, "")}, []Read{read(10, "").with(status(301))}, "error status"},
		{"504 of a node that was stopped", []Event{at(5, Pause, "n"), at(20, Resume, "n")}, []Read{read(4, "").with(status(504))}, ""},
		{"504 of another node", []Event{at(5, Pause, "m"), at(20, Resume, "m")}, []Read{read(4, "").with(status(504))}, "error status"},
		{"502 of a node that is shutting down", []Event{at(5, Down, "n")}, []Read{read(10, "").with(status(502))}, "error status"},

		{"503 of a node that starts", []Event{at(5, Start, "n"), at(8, Up, "n")}, []Read{read(10, "").with(status(503)), read(20, "v1")}, ""},
		{"503 of a node that has served", []Event{at(5, Start, "n"), at(8, Up, "n")}, []Read{read(10, "v1"), read(20, "").with(status(503))}, "error status"},
		{"503 of a node that serves by now", []Event{at(5, Start, "n"), at(8, Up, "n")}, []Read{read(10, "").with(status(503)), read(10, "v1")}, ""},
		{"502 of a node that starts", []Event{at(5, Start, "n"), at(8, Up, "n")}, []Read{read(10, "").with(status(502)), read(20, "v1")}, "error status"},
		{"503 of a node that never started", nil, []Read{read(10, "").with(status(503))}, "error status"},
		{"503 after a second start", []Event{at(5, Start, "n"), at(6, Up, "n"), at(20, Down, "n"), at(21, Start, "n"), at(22, Up, "n")},
			[]Read{read(10, "v1"), read(25, "").with(status(503)), read(40, "v1"), read(50, "").with(status(503))}, "error status"},

		{"no answer", nil, []Read{read(10, "").with(lost)}, "no answer"},
		{"no answer of a dead node", []Event{at(5, Down, "n"), at(20, Start, "n"), at(30, Up, "n")},
			[]Read{read(4, "").with(lost), read(10, "").with(lost), read(25, "").with(lost), read(30, "").with(lost)}, ""},
		{"no answer of one that is up", []Event{at(5, Down, "n"), at(20, Start, "n"), at(30, Up, "n")}, []Read{read(31, "").with(lost)}, "no answer"},
		{"no answer of one beside a dead one", []Event{at(5, Down, "m")}, []Read{read(10, "").with(lost)}, "no answer"},
		{"no answer while nodes are missing", []Event{at(5, Unsafe, "")}, []Read{read(10, "").with(lost)}, "no answer"},

		{"late", nil, []Read{read(10, "v1").with(slow)}, "late answer"},
		{"late without an answer", nil, []Read{read(10, "").with(lost).with(slow)}, "late answer, no answer"},
		{"late while it is stopped", []Event{at(50, Pause, "n"), at(60, Resume, "n")}, []Read{read(10, "v1").with(slow)}, ""},
		{"late with others in a pipeline", nil, []Read{read(10, "v1").with(func(r *Read) { r.Behind = 1 }).with(slow)}, ""},
		{"late while the machine stands still", []Event{{At: 150 * ms, Kind: Stall, For: 60 * ms}}, []Read{read(10, "v1").with(slow)}, ""},
		{"later than the machine stands still", []Event{{At: 150 * ms, Kind: Stall, For: 40 * ms}}, []Read{read(10, "v1").with(slow)}, "late answer"},
		{"late after the machine stood still", []Event{{At: 9 * ms, Kind: Stall, For: 60 * ms}}, []Read{read(10, "v1").with(slow)}, "late answer"},
		{"a timeout while the machine stands still", []Event{{At: 80 * ms, Kind: Stall, For: 60 * ms}}, []Read{read(10, "v1").with(status(504)).with(slow)}, ""},
		{"an error while the machine stands still", []Event{{At: 80 * ms, Kind: Stall, For: 60 * ms}}, []Read{read(10, "v1").with(status(500)).with(slow)}, "error status"},
		{"late while another is stopped", []Event{at(50, Pause, "m"), at(60, Resume, "m")}, []Read{read(10, "v1").with(slow)}, "late answer"},

		{"behind for a while", []Event{of(300, Calm, "v3"), at(0, Down, "m")}, []Read{read(1200, "v2"), read(1290, "v3"), read(1400, "v3")}, ""},
		{"behind for too long", []Event{of(300, Calm, "v3"), at(0, Down, "m")}, []Read{read(1290, "v2"), read(1301, "v2"), read(1400, "v3")},
			"nothing asked, stays behind"},
		{"behind on the other node", []Event{of(300, Calm, "v3")}, []Read{read(400, "v3")}, "nothing asked"},
		{"newer than that", []Event{of(150, Calm, "v2"), at(0, Down, "m")}, []Read{read(400, "v3"), read(2000, "v3")}, ""},
		{"never asked while calm", []Event{of(300, Calm, "v3"), at(0, Down, "m")}, []Read{read(10, "v1")}, "nothing asked"},
	} {
		h.check(t)
	}
}

// A random correct history has no violations, and each kind of modified read is
// detected.
func TestCheckFindsWhatIsSpoilt(t *testing.T) {
	spoil := map[string]func(*Read){
		"wrong answer": func(r *Read) { r.Body += "x" },
		"error status": status(502),
		"no answer":    lost,
		"late answer":  func(r *Read) { r.End += time.Second },
		"went back":    func(r *Read) { r.Version = "v1"; r.Body = "v1/" + r.Key },
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := faultless(rng)
		if found := Check(h, rules); len(found) != 0 {
			t.Fatalf("seed %d: %v", seed, found)
		}
		for rule, change := range spoil {
			i := rng.IntN(len(h.Reads))
			for h.Reads[i].Start < 400*ms { // v1 is outdated by then
				i = rng.IntN(len(h.Reads))
			}
			spoilt := &History{Events: h.Events, Reads: slices.Clone(h.Reads)}
			change(&spoilt.Reads[i])
			if found := Check(spoilt, rules); len(found) == 0 || !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == rule }) {
				t.Errorf("seed %d, read %d, %s: %v", seed, i, rule, found)
			}
		}
	}
}

// faultless returns the history of nodes that each serve versions v1 to v3 in
// turn.
func faultless(rng *rand.Rand) *History {
	h := &History{Events: append(slices.Clone(published), of(600, Calm, "v3"))}
	for _, node := range rules.Nodes {
		second, third := 100+rng.IntN(100), 200+rng.IntN(100)
		for client := range 3 {
			for when := rng.IntN(10); when < 1000; when += 1 + rng.IntN(10) {
				version := "v1"
				if when >= third {
					version = "v3"
				} else if when >= second {
					version = "v2"
				}
				key := string(rune('a' + rng.IntN(2)))
				h.Reads = append(h.Reads, read(when, version).with(func(r *Read) {
					r.Node, r.Client, r.Key, r.Body = node, client, key, version+"/"+key
					r.End = r.Start + time.Duration(rng.IntN(900))*time.Microsecond
				}))
			}
		}
	}
	rng.Shuffle(len(h.Reads), func(i, j int) { h.Reads[i], h.Reads[j] = h.Reads[j], h.Reads[i] })
	return h
}

// Save writes what was recorded.
func TestSave(t *testing.T) {
	var h History
	h.Note(Event{Kind: Down, Node: "n"})
	h.Note(Event{Kind: Up, Node: "n"})
	h.Add(read(1, "v1"))
	h.Add(read(2, "v1").with(lost))
	if h.Events[0].At > h.Events[1].At || h.Now() < h.Events[1].At {
		t.Errorf("time runs backwards: %+v", h.Events)
	}
	path := filepath.Join(t.TempDir(), "new", "history.jsonl.gz")
	expect.NoError(t, h.Save(path))
	f, err := os.Open(path)
	expect.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	expect.NoError(t, err)
	b, err := io.ReadAll(z)
	expect.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	var e Event
	var r Read
	for i, v := range []any{&Event{}, &e, &Read{}, &r} {
		expect.NoError(t, json.Unmarshal([]byte(lines[i]), v))
	}
	if e != h.Events[1] || r.Err != h.Reads[1].Err || r.Start != h.Reads[1].Start {
		t.Errorf("the last of each: %+v, %+v", e, r)
	}
}
