package gate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each rule at its limit and just beyond it.
func TestRules(t *testing.T) {
	before := &Totals{Records: 1000, Bytes: 10_000}
	c := func(records, bytes int64) Comparison {
		return Comparison{Version: Totals{records, bytes}, Served: before, Sample: Sample{Keys: 1000}}
	}
	missing := func(n, keys int64) Comparison {
		x := c(1000, 10_000)
		x.Sample = Sample{keys, n}
		return x
	}
	large := func(n int64) Comparison { x := c(1000, 10_000); x.Largest = n; return x }
	failed := func(names ...string) Comparison { x := c(1000, 10_000); x.Failed = names; return x }
	first := c(1, 1)
	first.Served = nil
	empty := c(5, 5)
	empty.Served = &Totals{}
	for name, test := range map[string]struct {
		rules  Rules
		good   Comparison
		bad    Comparison
		broken string
	}{
		"min records":     {Rules{MinRecords: 10}, c(10, 1), c(9, 1), "min_records: 9 records, at least 10"},
		"shrink, records": {Rules{MaxShrink: 0.29}, c(710, 10_000), c(709, 10_000), "max_shrink: 709 records instead of 1,000, 29.1 % fewer, at most 29 %"},
		"shrink, bytes":   {Rules{MaxShrink: 0.5}, c(1000, 5000), c(1000, 4999), "max_shrink: 4,999 bytes instead of 10,000, 50.01 % fewer, at most 50 %"},
		"shrink to none":  {Rules{MaxShrink: 0.999}, c(1, 10), c(0, 0), "max_shrink: 0 records instead of 1,000, 100 % fewer, at most 99.9 %; max_shrink: 0 bytes"},
		"growth":          {Rules{MaxGrowth: 2}, c(3000, 30_000), c(3001, 10_000), "max_growth: 3,001 records instead of 1,000, 200.1 % more, at most 200 %"},
		"missing":         {Rules{MaxMissing: 0.1}, missing(100, 1000), missing(101, 1000), "max_missing: 101 of 1,000 keys of the version that is served are missing, 10.1 %, at most 10 %"},
		"not sampled":     {Rules{MaxMissing: 0.9}, missing(0, 1), missing(0, 0), "max_missing: no node has partitions of both versions"},
		"value size":      {Rules{MaxValueSize: 100}, large(100), large(101), "max_value_size: the largest value on this node has 101 B, at most 100 B"},
		"required":        {Rules{Required: []Required{{Key: "a"}}}, failed(), failed("key a is missing"), "required_keys: key a is missing"},
		"first version":   {Rules{MaxShrink: 0.1, MaxMissing: 0.1}, first, c(1, 1), "max_shrink"},
		"after nothing":   {Rules{MaxShrink: 0.1, MaxGrowth: 0.1, MaxMissing: 0.1}, empty, c(1, 1), "max_shrink"},
	} {
		if got := broken(test.rules.Compare(test.good)); got != "" {
			t.Errorf("%s: just inside: %s", name, got)
		}
		if got := broken(test.rules.Compare(test.bad)); !strings.HasPrefix(got, test.broken) {
			t.Errorf("%s: just outside: %q, want %s", name, got, test.broken)
		}
		if test.rules.IsZero() || !test.rules.Equal(test.rules) || test.rules.Equal(Rules{}) {
			t.Errorf("%s: IsZero or Equal", name)
		}
	}
	a, b := Rules{Required: []Required{{"k", regexp.MustCompile("x")}}}, Rules{Required: []Required{{"k", regexp.MustCompile("y")}}}
	if a.Equal(b) || !a.Equal(Rules{Required: []Required{{"k", regexp.MustCompile("x")}}}) {
		t.Error("Equal of patterns")
	}
	if text := list([]string{"1", "2", "3", "4", "5", "6", "7"}); text != "1; 2; 3; 4; 5; and 2 more" {
		t.Error(text)
	}
}

// Reads of clients are asked for when all other rules are kept, and decide if there are enough.
func TestShadowVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		c      Candidate
		state  State
		shadow bool
	}{
		"none yet":           {Candidate{}, Pending, true},
		"some":               {Candidate{Shadow: Sample{99, 99}}, Pending, true},
		"few, inside":        {Candidate{Shadow: Sample{50, 5}, ShadowOver: true}, Passed, false},
		"few, outside":       {Candidate{Shadow: Sample{50, 6}, ShadowOver: true}, Held, false},
		"none, and no time":  {Candidate{ShadowOver: true}, Passed, false},
		"enough, inside":     {Candidate{Shadow: Sample{100, 10}}, Passed, false},
		"enough, outside":    {Candidate{Shadow: Sample{100, 11}}, Held, false},
		"late, outside":      {Candidate{Shadow: Sample{100, 11}, ShadowOver: true}, Held, false},
		"approved":           {Candidate{Shadow: Sample{100, 11}, Excused: "approved"}, Passed, false},
		"breaks other rules": {Candidate{ID: "3"}, Held, false},
	} {
		test.c.Plan, test.c.Held, test.c.Settled, test.c.Served, test.c.Known = "p", []bool{true}, true, "1", true
		if test.c.ID == "" {
			test.c.ID = "2"
		}
		g := New(Record{Last: &Last{Version: "1", Totals: Totals{100, 100}}})
		g.SetRules(Rules{MaxShrink: 0.5, ShadowReads: 100, MaxDiffering: 0.1})
		g.Measured("2", "1", g.rules, Measured{Figures: []*Totals{{90, 90}}}, nil)
		g.Measured("3", "1", g.rules, Measured{Figures: []*Totals{{10, 90}}}, nil)
		if v := g.Judge(test.c); v.State != test.state || v.Shadow != test.shadow {
			t.Errorf("%s: %s, %v (%s); want %s, %v", name, v.State, v.Shadow, v.Reason, test.state, test.shadow)
		}
	}
}

// a node of the model: which version it serves, and what it holds of the next one.
type judge struct {
	gate   *Gate
	name   string
	served string
	held   []bool
	report []byte
	state  State
	away   bool // from ZooKeeper: it sees and publishes nothing
	seen   map[string][]byte
}

// world is a number of nodes that judge one version, which has half of the records.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	nodes []*judge
	bad   bool
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1))}
	w.bad = w.rnd.IntN(2) == 0
	n, partitions := 1+w.rnd.IntN(5), 1+w.rnd.IntN(6)
	for i := range n {
		j := &judge{gate: New(Record{}), name: fmt.Sprint("node", i), held: make([]bool, partitions), served: "1"}
		j.gate.SetRules(Rules{MaxShrink: 0.3, MaxMissing: 0.3})
		for p := range partitions {
			j.held[p] = (p+i)%n < 2
		}
		if i > 0 && w.rnd.IntN(4) == 0 {
			j.served = "" // it is new
		}
		w.nodes = append(w.nodes, j)
	}
	return w
}

// figures are those of a version on a node.
func (w *world) figures(j *judge, version string) Measured {
	m := Measured{Figures: make([]*Totals, len(j.held)), Sample: Sample{Keys: 10}}
	records := int64(100)
	if version == "2" && w.bad {
		records, m.Sample.Missing = 50, 5
	}
	for p, held := range j.held {
		if held {
			m.Figures[p] = &Totals{records, records * 10}
		}
	}
	return m
}

// step lets a node look, measure, or lose or find ZooKeeper.
func (w *world) step() {
	j := w.nodes[w.rnd.IntN(len(w.nodes))]
	switch w.rnd.IntN(8) {
	case 0:
		j.away = !j.away
	case 1:
		if j.served != "" {
			j.gate.Measured("1", "", j.gate.rules, w.figures(j, "1"), nil)
		}
	case 2:
		j.gate.Measured("2", j.served, j.gate.rules, w.figures(j, "2"), nil)
	case 3:
		j.gate.Forget("2") // a restart
		j.report, j.state = nil, ""
	default:
		w.look(j)
	}
}

func (w *world) look(j *judge) {
	if !j.away {
		j.seen = make(map[string][]byte)
		for _, other := range w.nodes {
			if other != j && other.report != nil && (!other.away || w.rnd.IntN(2) == 0) {
				j.seen[other.name] = other.report
			}
		}
	}
	if j.served != "" {
		reports := make(map[string][]byte) // all of the version that is served
		for _, other := range w.nodes {
			if other != j {
				m := w.figures(other, "1")
				r := m.report()
				r.Plan, r.State = "p", Active
				data, err := r.encode()
				if err != nil {
					w.t.Fatal(err)
				}
				reports[other.name] = data
			}
		}
		j.gate.Judge(Candidate{ID: "1", Plan: "p", Held: j.held, Settled: true, Active: true, Served: "1", Reports: reports, Known: true})
	}
	c := Candidate{ID: "2", Plan: "q", Held: j.held, Settled: true, Served: j.served, Reports: maps.Clone(j.seen), Known: j.seen != nil}
	if w.judges() {
		c.Elsewhere = "1"
	}
	v := j.gate.Judge(c)
	j.report, j.state = v.Report, v.State
	if !v.MayServe() {
		return
	}
	if w.bad && w.judges() {
		w.t.Fatalf("%s lets the bad version pass: %+v", j.name, v)
	}
	for _, other := range w.nodes {
		if other.state == Held {
			w.t.Fatalf("%s lets a version pass that %s holds", j.name, other.name)
		}
	}
}

// judges reports whether a node that has reported can compare.
func (w *world) judges() bool {
	return slices.ContainsFunc(w.nodes, func(j *judge) bool { return j.served != "" })
}

// Nodes that measure, look, restart and lose ZooKeeper in any order never let a bad version pass, and all come to the
// same judgement in the end.
func TestRandomJudgements(t *testing.T) {
	passed, held := 0, 0
	for seed := range uint64(2000) {
		w := newWorld(t, seed)
		w.nodes[0].gate.Measured("2", "1", w.nodes[0].gate.rules, w.figures(w.nodes[0], "2"), nil) // so that there is a judge
		w.look(w.nodes[0])
		w.nodes[0].away = false
		for range 60 {
			w.step()
		}
		for range 3 {
			for _, j := range w.nodes {
				j.away = false
				if j.served != "" {
					j.gate.Measured("1", "", j.gate.rules, w.figures(j, "1"), nil)
				}
				j.gate.Measured("2", j.served, j.gate.rules, w.figures(j, "2"), nil)
				w.look(j)
			}
		}
		for _, j := range w.nodes {
			switch {
			case w.bad && j.state == Held:
				held++
			case !w.bad && j.state == Passed:
				passed++
			default:
				t.Fatalf("seed %d: %s ends with %s, bad %v", seed, j.name, j.state, w.bad)
			}
		}
	}
	if passed == 0 || held == 0 {
		t.Errorf("%d passed, %d held", passed, held)
	}
}
