package gate_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"sequins/store"
	"sequins/test/expect"
	"sequins/version/gate"
	"sequins/version/report"
)

func pick[T any](rnd *rand.Rand, all ...T) T { return all[rnd.IntN(len(all))] }

// randomFinding is one by some rules, and consistent in itself.
func randomFinding(rnd *rand.Rand) store.Finding {
	f := store.Finding{State: pick(rnd, store.Pending, store.Passed, store.Held), Rules: pick(rnd, shrink, shrink, other, gate.Rules{}).Fingerprint()}
	if name := pick(rnd, "", "1", "2", "20"); name != "" {
		f.Against = of(name)
	}
	f.Vetoed = f.State == store.Held && rnd.IntN(4) == 0
	return f
}

func randomFacts(rnd *rand.Rand) gate.Facts {
	f := judging(pick[int64](rnd, good, bad))
	for i := range rnd.IntN(4) {
		r := seen(pick(rnd, shrink, shrink, other, gate.Rules{}), pick(rnd, "", "1", "2", "20"), store.Pending, "")
		r.Finding = randomFinding(rnd)
		if rnd.IntN(3) == 0 {
			r.Blocks = nil
		}
		f.Reports[fmt.Sprint("node", i)] = r
	}
	if rnd.IntN(3) == 0 {
		b := randomFinding(rnd)
		f.Before = &b
	}
	changes := []func(f *gate.Facts){unmeasured, unsummed, waited, servesNothing, older, excused, func(f *gate.Facts) { f.Rules = gate.Rules{} }, func(f *gate.Facts) { f.Known = false },
		func(f *gate.Facts) {
			f.Rules.Required, f.Own.Failed = []gate.Required{{Key: "k"}}, []string{"key k is missing"}
			f.Own.Rules = f.Rules.Fingerprint()
		}}
	for _, i := range rnd.Perm(len(changes))[:rnd.IntN(3)] {
		if f.Own != nil || i > 0 && i < len(changes)-1 {
			changes[i](&f)
		}
	}
	return f
}

// without returns facts without what nodes with other rules have found. Their figures stay.
func without(f gate.Facts) gate.Facts {
	reports := make(map[string]report.Report)
	for node, r := range f.Reports {
		if r.Rules != f.Rules.Fingerprint() {
			r.Rules = ""
		}
		if r.Finding.Rules != f.Rules.Fingerprint() {
			r.Finding = store.Finding{State: r.Finding.State}
		}
		reports[node] = r
	}
	f.Reports = reports
	return f
}

// Of any facts: a veto holds; a content passes for a reason only; nodes with other rules have no influence; and the order of the nodes has none.
func TestRandomFacts(t *testing.T) {
	states := make(map[string]int)
	for seed := range uint64(4000) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		f := randomFacts(rnd)
		v := gate.Judge(f)
		states[v.State]++
		rules := f.Rules.Fingerprint()
		veto := v.Own.Vetoed
		reason := rules == "" || f.Excused != "" || v.Own.State == store.Passed || f.Before != nil && f.Before.State == store.Passed && f.Before.Rules == rules
		for _, r := range f.Reports {
			if r.Finding.Rules == rules && rules != "" {
				veto = veto || r.Finding.Vetoed
				reason = reason || r.Finding.State == store.Passed && r.Finding.Against.Name != "" && (f.Older || r.Finding.Against.Name >= f.Served.Name)
			}
		}
		if f.Excused == "" && veto != (v.State == store.Held && veto) {
			t.Fatalf("seed %d: a veto is overruled: %+v: %+v", seed, f, v)
		}
		if v.State == store.Passed && !reason {
			t.Fatalf("seed %d: it passes without a reason: %+v: %+v", seed, f, v)
		}
		if alone := gate.Judge(without(f)); !reflect.DeepEqual(alone, v) {
			t.Fatalf("seed %d: other rules have an influence: %+v: %+v without, %+v with", seed, f, alone, v)
		}
		renamed := f
		renamed.Reports = make(map[string]report.Report)
		for node, r := range f.Reports {
			renamed.Reports[fmt.Sprint(rnd.IntN(1000), node)] = r
		}
		again := gate.Judge(renamed)
		again.Own.Reason = v.Own.Reason // it can name the first one of several nodes
		if again.State != v.State || again.Waits != v.Waits || again.Own != v.Own {
			t.Fatalf("seed %d: the order of nodes has an influence: %+v: %+v, %+v", seed, f, v, again)
		}
	}
	for _, state := range []string{store.Pending, store.Passed, store.Held} {
		if states[state] < 200 {
			t.Errorf("%s: %d times", state, states[state])
		}
	}
}

// node is one of a model of a cluster that judges version 3.
type node struct {
	name   string
	facts  gate.Facts
	own    *gate.Measures // as soon as it has measured
	away   bool           // it has not started yet
	serves bool           // it has switched to version 3
	views  map[string]report.Report
	v      gate.Verdict
}

// world is a cluster. Records are those of each partition; what the nodes serve has totals by name.
type world struct {
	t       *testing.T
	rnd     *rand.Rand
	nodes   []*node
	board   map[string][]byte // what is in ZooKeeper
	records int64
	lacks   bool // the first partition lacks a required key
	totals  map[string]int64
}

// newWorld makes a cluster in which a node with the usual rules serves version 2, and is the only one that has the first partition. Others
// serve something else, have other rules, or none, or have lost the totals, or come later.
func newWorld(t *testing.T, seed uint64) *world {
	rnd := rand.New(rand.NewPCG(seed, 4))
	partitions := 1 + rnd.IntN(5)
	w := &world{t: t, rnd: rnd, board: make(map[string][]byte), records: pick[int64](rnd, 50, 100),
		lacks: rnd.IntN(3) == 0, totals: map[string]int64{"1": pick[int64](rnd, 60, 200), "2": 100}}
	for i := range 2 + rnd.IntN(4) {
		n := &node{name: fmt.Sprint("node", i), views: make(map[string]report.Report)}
		f := &n.facts
		f.Rules, f.Held = pick(rnd, strict, strict, strict, other, gate.Rules{}), make([]bool, partitions)
		name := pick(rnd, "", "1", "1", "2")
		n.away = rnd.IntN(3) == 0
		if i == 0 {
			f.Rules, name, n.away = strict, "2", false
		}
		if name != "" {
			f.Served = of(name)
			if i == 0 || rnd.IntN(4) > 0 {
				f.Totals = &store.Totals{Records: w.totals[name] * int64(partitions), Bytes: w.totals[name] * int64(partitions)}
			}
		}
		for p := range partitions {
			f.Held[p] = i == 0 && p == 0 || p > 0 && (i == 1 || rnd.IntN(2) == 0)
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

var strict = gate.Rules{MaxShrink: 0.3, Required: []gate.Required{{Key: "k"}}}

// isBad reports whether the nodes with the strict rules have to hold the version.
func (w *world) isBad() bool { return w.lacks || w.records < 70 }

// load gives a node its blocks, whose figures are known at once.
func (w *world) load(n *node) {
	n.facts.Figures = make(map[int]report.Figures)
	for p, held := range n.facts.Held {
		if held {
			n.facts.Figures[p] = report.Figures{Records: w.records, Bytes: w.records}
		}
	}
}

func (w *world) measure(n *node) {
	n.own = &gate.Measures{Held: n.facts.Held, Rules: n.facts.Rules.Fingerprint()}
	if w.lacks && n.facts.Held[0] {
		n.own.Failed = []string{"key k is missing"}
	}
}

// look lets a node judge by what it has seen, switch, and report.
func (w *world) look(n *node) {
	f := n.facts
	f.Own, f.Reports, f.Known = n.own, n.views, true
	var finding store.Finding
	if n.serves {
		finding = *f.Before
	} else {
		n.v = gate.Judge(f)
		finding = n.v.Own
		if n.v.State != store.Pending {
			r := n.v.Finding
			n.facts.Before = &r
		}
		if n.v.MayServe() && w.rnd.IntN(2) == 0 {
			n.serves, n.facts.Served, finding = true, of("3"), *n.facts.Before
		}
	}
	r := gate.NewReport(n.facts.Served, f.Rules, f.Figures, n.own, finding)
	r.Measured = n.v.Measured
	data, err := r.Encode()
	expect.NoError(w.t, err)
	w.board[n.name] = data
	if n.v.MayServe() && f.Rules.Fingerprint() == strict.Fingerprint() && w.isBad() {
		w.t.Fatalf("%s lets the bad version pass: %+v", n.name, n.v)
	}
}

// see lets a node see what another one has reported last.
func (w *world) see(n, of *node) {
	if data, there := w.board[of.name]; there && n != of {
		r, err := report.Parse(data)
		expect.NoError(w.t, err)
		n.views[of.name] = r
	} else {
		delete(n.views, of.name)
	}
}

func (w *world) step() {
	n := pick(w.rnd, w.nodes...)
	if n.away {
		n.away = w.rnd.IntN(4) > 0
		return
	}
	switch w.rnd.IntN(9) {
	case 8:
		w.load(n)
	case 0:
		if n.facts.Figures != nil {
			w.measure(n)
		}
	case 1: // a restart
		n.own, n.views, n.v = nil, make(map[string]report.Report), gate.Verdict{}
		delete(w.board, n.name)
	case 2, 3, 4:
		w.see(n, pick(w.rnd, w.nodes...))
	default:
		w.look(n)
	}
}

// Nodes that measure, look, restart, come late, see reports late and have other rules or none never let a version pass that a node that serves
// the newest one holds, and all with the same rules come to the same verdict.
func TestExchange(t *testing.T) {
	passed, held := 0, 0
	for seed := range uint64(600) {
		w := newWorld(t, seed)
		for range 80 {
			w.step()
		}
		for _, n := range w.nodes {
			w.load(n)
			w.measure(n)
		}
		for round := range 4 {
			for _, n := range w.nodes {
				for _, other := range w.nodes {
					w.see(n, other)
				}
				n.facts.Waited = round > 1 && n.v.Waits || n.facts.Waited
				w.look(n)
			}
		}
		for _, n := range w.nodes {
			want := store.Passed
			if w.isBad() && n.facts.Rules.Fingerprint() == strict.Fingerprint() {
				want = store.Held
				held++
			} else {
				passed++
			}
			if n.facts.Served == of("3") && want != store.Passed || !n.serves && n.v.State != want {
				t.Fatalf("seed %d: %s ends with %+v, not with %s", seed, n.name, n.v, want)
			}
		}
	}
	if passed < 200 || held < 200 {
		t.Errorf("%d passed, %d held", passed, held)
	}
}
