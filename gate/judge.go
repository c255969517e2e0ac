package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sequins/internal/human"
)

// Judge judges a version.
func (g *Gate) Judge(c Candidate) Verdict {
	j := g.version(c.ID)
	others := j.parse(c)
	v := g.own(j, c, others)
	v.Otherwise = g.otherwise(others)
	if c.Active {
		g.remember(c, j)
	}
	if j.measured != nil {
		r := j.measured.report()
		r.Plan, r.State, r.Reason, r.Rules = c.Plan, v.State, v.Reason, g.rules.Fingerprint()
		// What is older than the served version is not compared with it, so that is no judgement for others.
		r.Judge = c.Served != "" && !(c.Active && j.blind) && (v.Excused || !c.Older)
		var err error
		if v.Report, err = r.encode(); err != nil {
			v.Reason = err.Error()
		}
	}
	if c.Active || v.Excused {
		return v
	}
	v = v.with(others, c)
	j.blind = c.Served == "" || c.Older
	g.note(v, c)
	return v
}

// otherwise returns the nodes that judge by other rules.
func (g *Gate) otherwise(others []named) (nodes []string) {
	own := g.rules.Fingerprint()
	for _, o := range others {
		if o.Rules != "" && o.Rules != own {
			nodes = append(nodes, o.node)
		}
	}
	return nodes
}

// note records that a version is held, or that it is no longer.
func (g *Gate) note(v Verdict, c Candidate) {
	switch {
	case v.State == Held && !v.Known:
		g.setMark(Mark{Version: c.ID, Plan: c.Plan, Held: v.Reason, Rules: g.rules.Fingerprint(), Against: c.Served})
	case v.State == Passed && g.mark(c.ID, c.Plan).Held != "":
		g.unmark(c.ID)
	}
}

// own judges a version by the figures of all nodes.
func (g *Gate) own(j *judged, c Candidate, others []named) Verdict {
	v := Verdict{State: Pending}
	stale := g.isStale(j, c)
	if c.Settled && (stale || j.lacks(c.Held)) {
		v.Measure = true
		if !c.Active {
			v.Served = c.Served
		}
	}
	unknown := j.sum(c, others)
	if c.Active {
		v.State = Active
		return v
	}
	mark := g.mark(c.ID, c.Plan)
	if c.Older && mark.Served && c.Excused == "" {
		c.Excused = "this node has served it before"
	}
	again := g.isMarked(mark, c)
	if v.Reason = g.unjudged(j, c, v.Measure, stale, unknown); v.Reason == "" {
		v = v.compared(g, j, c, others, again)
	}
	switch {
	case c.Excused != "":
		v.State, v.Reason, v.Excused, v.Shadow = Passed, c.Excused, true, false
	case again && (c.Older || v.State == Pending):
		v.State, v.Reason, v.Known = Held, mark.Held, true
	case c.HeldBy != "":
		v.State, v.Reason = Held, c.HeldBy
	}
	return v
}

// isMarked reports whether a version was held by the present rules, in comparison with the version that is served: then it
// stays held until it is known to keep them.
func (g *Gate) isMarked(m Mark, c Candidate) bool {
	return m.Held != "" && m.Rules == g.rules.Fingerprint() && (m.Against == c.Served || c.Deciding || c.Older)
}

// unjudged returns why the rules cannot be applied yet; "" if they can.
func (g *Gate) unjudged(j *judged, c Candidate, measuring, stale bool, unknown []int) string {
	switch {
	case !c.Known:
		return "it is not known yet what other nodes report"
	case c.Asking:
		return "other nodes are asked whether they have held it"
	case measuring && j.failure != nil:
		return fmt.Sprintf("its figures cannot be read, and are read again: %v", j.failure)
	case measuring && (len(c.Held) == 0 || slices.Contains(c.Held, true)):
		return "its figures are being read"
	case stale:
		return "its figures are read again when its load has ended"
	case len(unknown) > 0:
		return "the figures of " + human.Plural(len(unknown), "partition") + " are not known yet: " + human.Ranges(unknown)
	case c.Deciding:
		return "it is not decided yet which version is served"
	case c.Served != "" && !c.Older && g.served(c) == nil:
		return "not all figures of the version that is served are known"
	}
	return ""
}

// compared applies the rules. again: it was held before.
func (v Verdict) compared(g *Gate, j *judged, c Candidate, others []named, again bool) Verdict {
	v.Checks = g.rules.Compare(g.comparison(j, c, others))
	v.State, v.Reason = Passed, broken(v.Checks)
	switch {
	case v.Reason != "":
		v.State = Held
	case g.rules.shadows() && c.Served != "" && !c.Older:
		return v.shadowed(g.rules, c, again)
	}
	return v
}

// shadowed applies the rule on reads of clients, or asks for more of them. What was held before is not served for lack of
// them.
func (v Verdict) shadowed(r Rules, c Candidate, again bool) Verdict {
	over := c.ShadowOver && !again
	check := r.differing(c.Shadow, c.ShadowOver)
	v.Checks = append(v.Checks, check)
	switch {
	case check.Broken:
		v.State, v.Reason = Held, broken(v.Checks)
	case c.Shadow.Keys < r.ShadowReads && !over:
		v.State, v.Shadow = Pending, true
		v.Reason = fmt.Sprintf("%s of %s reads of clients have been compared", human.Count(c.Shadow.Keys), human.Count(r.ShadowReads))
	}
	return v
}

// isStale reports whether the figures are those of other rules or of a comparison with another version.
func (g *Gate) isStale(j *judged, c Candidate) bool {
	return j.measured != nil && !c.Active && (j.served != c.Served && g.rules.samples() || !j.rules.Equal(g.rules))
}

// lacks reports whether figures of partitions on this node are missing.
func (j *judged) lacks(held []bool) bool {
	m := j.measured
	if m == nil || len(m.Figures) != len(held) {
		return true
	}
	for p, here := range held {
		if here && m.Figures[p] == nil {
			return true
		}
	}
	return false
}

// sum computes the totals of a version, and returns the partitions whose figures no node has reported.
func (j *judged) sum(c Candidate, others []named) []int {
	known := make([]*Totals, len(c.Held))
	if j.measured != nil {
		copy(known, j.measured.Figures)
	}
	for _, o := range others {
		o.add(known)
	}
	t, unknown := sum(known)
	if len(unknown) == 0 {
		j.totals = &t
	}
	return unknown
}

// served returns the totals of the version that is served; nil if they are not known.
func (g *Gate) served(c Candidate) *Totals {
	if j := g.versions[c.Served]; j != nil && j.totals != nil {
		return j.totals
	}
	if last := g.record.Last; last != nil && (c.Served == "" || c.Served == last.Version) {
		return &last.Totals
	}
	return nil
}

func (g *Gate) comparison(j *judged, c Candidate, others []named) Comparison {
	cmp := Comparison{Version: *j.totals, unsampled: c.Served == "" || c.Older}
	if !c.Older {
		cmp.Served = g.served(c)
	}
	if m := j.measured; m != nil {
		cmp.Sample, cmp.Largest, cmp.Failed = m.Sample, m.Largest, m.Failed
	}
	for _, o := range others {
		cmp.Sample.Keys += o.Sample.Keys
		cmp.Sample.Missing += o.Sample.Missing
	}
	return cmp
}

// broken names the broken rules; "" if none is.
func broken(checks []Check) string {
	var texts []string
	for _, c := range checks {
		if c.Broken {
			texts = append(texts, c.Rule+": "+c.Text)
		}
	}
	return strings.Join(texts, "; ")
}

// with combines a node's own judgement with what the others report. A node that serves no version cannot compare, and
// leaves the judgement to those that do.
func (v Verdict) with(others []named, c Candidate) Verdict {
	judge := c.Served != ""
	for _, o := range others { // those that serve it have decided; clients see it
		if o.State == Active && (o.Judge || !judge) {
			v.State, v.Reason = Passed, "node "+o.node+" serves it"
			return v
		}
	}
	if v.State == Held {
		return v
	}
	for _, o := range others {
		if o.State == Held {
			v.State, v.Reason = Held, fmt.Sprintf("node %s holds it: %s", o.node, o.Reason)
			return v
		}
	}
	if judge || v.State != Passed {
		return v
	}
	return v.awaiting(others, c)
}

// awaiting is the judgement of a node that serves no version, if those that do are not done.
func (v Verdict) awaiting(others []named, c Candidate) Verdict {
	judges := 0
	for _, o := range others {
		if o.Judge && o.State == Pending {
			v.State, v.Reason = Pending, fmt.Sprintf("node %s serves a version and has not judged this one yet", o.node)
			return v
		}
		if o.Judge {
			judges++
		}
	}
	if judges == 0 && c.Elsewhere != "" {
		v.State, v.Reason = Pending, fmt.Sprintf("other nodes serve version %s and have not judged this one yet", c.Elsewhere)
	}
	return v
}

// named is a report and the node that it is from.
type named struct {
	node string
	Report
}

// parse parses the reports of other nodes about the same plan, in the order of their addresses. A report that cannot be
// parsed is left out, as if the node had not reported yet.
func (j *judged) parse(c Candidate) []named {
	var found []named
	for _, addr := range slices.Sorted(maps.Keys(c.Reports)) {
		data := c.Reports[addr]
		p, known := j.others[addr]
		if !known || !same(p.data, data) {
			p = parsed{data: data}
			p.report, p.err = parseReport(data)
			j.others[addr] = p
		}
		if p.err == nil && p.report.Plan == c.Plan {
			found = append(found, named{addr, p.report})
		}
	}
	maps.DeleteFunc(j.others, func(addr string, _ parsed) bool { _, there := c.Reports[addr]; return !there })
	return found
}

// same reports whether two slices are the same memory, which is never modified.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
