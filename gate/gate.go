package gate

import (
	"sequins/status"
)

// Gate judges the versions of one database. It belongs to one goroutine.
type Gate struct {
	rules    Rules
	versions map[string]*judged // by id
	record   Record
	changed  bool // record has not been saved
}

// judged is what is known of one version.
type judged struct {
	measured *Measured
	failure  error  // why it could not be measured again
	rules    Rules  // by which it was measured
	served   string // the version that it was compared with
	totals   *Totals
	blind    bool // it became active without a comparison: on a node that served no version before, or by a rollback
	others   map[string]parsed
}

// parsed is a report of another node and what it was parsed from.
type parsed struct {
	data   []byte
	report Report
	err    error
}

// New returns a gate without rules. r is what Save has saved before a restart.
func New(r Record) *Gate {
	return &Gate{versions: make(map[string]*judged), record: r}
}

// SetRules sets the rules, and reports whether there are any.
func (g *Gate) SetRules(r Rules) bool {
	g.rules = r
	return !r.IsZero()
}

// Forget forgets the figures of a version. Its mark stays.
func (g *Gate) Forget(id string) { delete(g.versions, id) }

// Measured takes the result of Measure for a version that was compared with served, or "". After an error the figures
// are asked for again.
func (g *Gate) Measured(id, served string, rules Rules, m Measured, err error) {
	j := g.version(id)
	if j.failure = err; err == nil {
		j.measured, j.served, j.rules = &m, served, rules
	}
}

func (g *Gate) version(id string) *judged {
	j := g.versions[id]
	if j == nil {
		last := g.record.Last
		j = &judged{others: make(map[string]parsed), blind: last != nil && last.Version == id && last.Blind}
		g.versions[id] = j
	}
	return j
}

// Candidate is a version to be judged.
type Candidate struct {
	ID, Plan string
	// Held reports for each partition whether it is on this node; Settled, whether no more of them are being loaded.
	Held    []bool
	Settled bool
	// Active: the node serves it. Excused is why it need not keep the rules: somebody has approved or pinned it, or it
	// was served before a restart; "" if it must.
	Active  bool
	Excused string
	// Served is the version that the node serves, or "". Deciding: it is not decided yet which version that is.
	Served   string
	Deciding bool
	// Older: it is older than the version that the node serves, or served before a restart. If the node has served it, it
	// need not keep the rules to be served after a rollback; if it was held, it is held. Otherwise it is not compared with
	// the version that is served, which people do not want.
	Older bool
	// HeldBy says which other node has held an older version of which this node knows nothing, and why; "" if none has.
	// Asking: the other nodes are being asked.
	HeldBy string
	Asking bool
	// Shadow are the reads that have been compared: Sample.Missing are those that differ. ShadowOver reports whether
	// Rules.ShadowTimeout is over.
	Shadow     Sample
	ShadowOver bool
	// Elsewhere is an older version that other nodes serve; "" if there is none. A node that serves no version then leaves
	// the judgement to them.
	Elsewhere string
	// Reports are those of the other nodes, by address; Known, whether they are known.
	Reports map[string][]byte
	Known   bool
}

// Verdict is the judgement of a version.
type Verdict struct {
	State  State
	Reason string  // of Pending and Held, and why it was excused
	Checks []Check // of the rules, as far as the figures are known
	// Excused: it passes for the reason of Candidate.Excused. Known: it is held as it was before, maybe before a restart.
	Excused, Known bool
	// Otherwise are the nodes that judge it by other rules.
	Otherwise []string
	// Report is what to publish; nil for nothing.
	Report []byte
	// Measure asks for Measure, with Served if that is not "".
	Measure bool
	Served  string
	// Shadow asks for reads of clients to be compared with it.
	Shadow bool
}

// MayServe reports whether the node may advertise the version and switch to it.
func (v Verdict) MayServe() bool { return v.State == Passed || v.State == Active }

// Status returns the results of the rules for the status.
func (v Verdict) Status() []status.GateCheck {
	var all []status.GateCheck
	for _, c := range v.Checks {
		all = append(all, status.GateCheck{Rule: c.Rule, Value: c.Value, Limit: c.Limit, Broken: c.Broken, Text: c.Text})
	}
	return all
}
