package node

import (
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/store"
	"sequins/version/gate"
	"sequins/version/report"
)

// A judge finds whether versions of a database may be served.
type judge struct {
	db     *common
	memory *memory
	rules  gate.Rules
	// elsewhere are the verdicts that other nodes have held contents by, as last reported, by the address of the node.
	elsewhere map[string][]store.Verdict
}

// measureRetry is the pause after figures could not be read. A damaged block is loaded again meanwhile.
const measureRetry = 5 * time.Second

// followRules takes over rules that have changed. What was judged by the others is judged again.
func (j *judge) followRules() {
	if rules := j.db.options().Gate; rules.Fingerprint() != j.rules.Fingerprint() {
		j.rules = rules
		j.waitAnew()
	}
}

// waitAnew lets verdicts wait again, as they are made from something else from now on.
func (j *judge) waitAnew() {
	for _, l := range j.db.live {
		l.judged.waitUntil = time.Time{}
	}
}

// judge decides whether a version may be advertised and served, and publishes what this node finds.
func (j *judge) judge(l *live, held []bool) gate.Verdict {
	before, c := l.judged.verdict, l.content()
	if c == j.servedContent() && j.memory.state.Totals == nil {
		if t := j.totals(l); t != nil { // they are known from now on
			j.memory.state.Totals = t
			j.memory.saveSoon()
		}
	}
	v := gate.Verdict{Finding: store.Finding{State: store.Passed}}
	served, totals := j.compared(c)
	if isServed := c == served || j.db.facts.WasServed(c.Input) && !j.db.facts.Likely; !isServed && !j.rules.IsZero() {
		f := j.factsOf(l, held, served, totals)
		v = gate.Judge(f)
		switch { // one that waits for what may never come is made anew when that wait is over
		case v.State != store.Pending:
			j.memory.keepVerdict(c, v)
		case v.Waits && l.judged.waitUntil.IsZero():
			l.judged.waitUntil = time.Now().Add(gate.MaxWait)
			j.db.bg.lookAt(l.judged.waitUntil)
		}
		if !j.db.isLoading(l.in()) && !l.judged.measuring && !l.judged.measures.IsCurrent(held, j.rules, f.Sampled) {
			j.measure(l, f.Sampled)
		}
	}
	l.judged.verdict = v
	l.v.Withhold(!v.MayServe())
	j.report(l)
	switch {
	case v.MayServe() && !before.MayServe() && j.db.node.joined.Load():
		l.advertiseOpen()
	case !v.MayServe() && before.MayServe():
		l.Withdraw()
	}
	if v.Skipped != "" && before.Skipped == "" {
		j.db.log.Warn("rules of the gate cannot be applied", "version", l.in().Name, "reason", v.Skipped)
	}
	return v
}

// factsOf returns what the verdict on a version depends on. served and totals are what it is compared with.
func (j *judge) factsOf(l *live, held []bool, served content.Content, totals *store.Totals) gate.Facts {
	c, known := l.content(), &j.db.facts
	f := gate.Facts{Rules: j.rules, Held: held, Totals: totals, Mixed: j.db.node.o.Cluster.Mixed(), Figures: l.figures, Own: l.judged.measures, Served: served,
		Older: c.Name < max(known.Current.Name, known.Before().Name), Undecided: known.Likely && known.Deciding() && c.Input != known.Before(),
		Before: j.memory.verdictBefore(c), Waited: j.db.bg.isDue(l.judged.waitUntil)}
	if j.db.live[served.Input] != nil && !f.Older {
		f.Sampled = served
	}
	f.Reports, f.Known = l.Reports()
	f.Reports = j.recall(c, f.Reports)
	if current := j.db.live[known.Current]; current != nil && f.Older {
		have, _ := current.Reports()
		rules := j.rules.Fingerprint()
		for addr, r := range have {
			if r.Rules == rules {
				f.Fellows = append(f.Fellows, addr)
			}
		}
	}
	switch {
	case known.Pin.Version == c.Name:
		f.Excused = "it is pinned"
	case known.Pin.Excuses(c.Name):
		f.Excused = "it is approved"
		if j.memory.pin.By != "" {
			f.Excused += " (by " + j.memory.pin.By + ")"
		}
	case slices.Contains(j.memory.state.Former, c):
		f.Excused = "this node has served it before"
	}
	return f
}

// compared returns what a content is compared with, and its totals, nil if they are not known: what is served or, if it is not known what was served
// before a restart, the newest older content of which all figures are known.
func (j *judge) compared(c content.Content) (served content.Content, totals *store.Totals) {
	served = j.servedContent()
	switch l := j.db.live[served.Input]; {
	case served.Name != "" && served == j.memory.state.Served:
		return served, j.memory.state.Totals
	case l != nil:
		return served, j.totals(l)
	case !j.db.facts.Likely:
		return served, nil
	}
	for in, l := range j.db.live {
		if t := j.totals(l); t != nil && in.Name < c.Name && in.Name > served.Name {
			served, totals = l.content(), t
		}
	}
	return served, totals
}

// servedContent returns what this node serves, or served before its restart.
func (j *judge) servedContent() content.Content {
	if j.db.facts.Current == j.memory.state.Served.Input || j.db.facts.Current.Name == "" && !j.db.facts.Likely {
		return j.memory.state.Served
	}
	return j.db.set.Current()
}

// rejected returns the inputs that the source lists and that this node, or another one, has held by the same rules. A node drops a held version when a
// newer one is held, too, and the others may then lack the figures to judge it.
func (j *judge) rejected() []content.Input {
	if j.rules.IsZero() {
		return nil
	}
	for _, l := range j.db.live {
		reports, _ := l.Reports()
		for node, r := range reports {
			j.elsewhere[node] = r.Rejected
		}
	}
	all := slices.Concat(j.memory.rejected(), slices.Concat(slices.Collect(maps.Values(j.elsewhere))...))
	held, rules := make(map[content.Input]bool), j.rules.Fingerprint()
	for _, v := range all {
		held[v.Input] = held[v.Input] || v.Rules == rules
	}
	return slices.DeleteFunc(slices.Clone(j.db.facts.Listed), func(in content.Input) bool { return !held[in] || j.db.facts.Pin.Excuses(in.Name) })
}

// recall returns reports with the findings of nodes that have held a content, where the reports do not tell them yet, or not any more.
func (j *judge) recall(c content.Content, published map[string]report.Report) map[string]report.Report {
	reports := make(map[string]report.Report, len(published))
	maps.Copy(reports, published)
	for node, rejected := range j.elsewhere {
		for _, v := range rejected {
			if r := reports[node]; v.Content == c && (r.Finding.State == "" || r.Finding.State == store.Pending) {
				r.Finding = v.Finding
				reports[node] = r
			}
		}
	}
	return reports
}

// totals returns the totals of a version; nil if not all of its figures are known.
func (j *judge) totals(l *live) *store.Totals {
	reports, _ := l.Reports()
	t, unknown := report.Sum(len(l.open), l.figures, reports)
	if len(unknown) > 0 {
		return nil
	}
	return &store.Totals{Records: t.Records, Bytes: t.Bytes}
}

// report publishes what this node reports of a version.
func (j *judge) report(l *live) {
	if j.db.node.alone() || !j.db.node.joined.Load() {
		return
	}
	found := l.judged.verdict.Own
	if before := j.memory.verdictBefore(l.content()); before != nil && j.db.facts.WasServed(l.in()) {
		found = *before
	}
	r := gate.NewReport(j.servedContent(), j.rules, l.figures, l.judged.measures, found)
	v, _ := j.db.facts.Entry(l.in())
	r.Loading, r.Measured, r.Rejected = v.Begun, l.judged.verdict.Measured, j.memory.rejected()
	data, err := r.Encode()
	switch {
	case err != nil && !l.judged.unreported:
		l.judged.unreported = true
		j.db.log.Error("what this node holds of a version cannot be reported to other nodes", "version", l.in().Name, "error", err)
	case err == nil:
		l.Report(data)
	}
}

// measure reads the figures of a version in the background, and compares it with another one, or with none.
func (j *judge) measure(l *live, against content.Content) {
	h := j.db.set.AcquireVersion(l.in().Name, l.content().Code())
	if h == nil {
		return
	}
	other := j.db.set.AcquireVersion(against.Name, against.Code())
	l.judged.measuring = true
	rules := j.rules
	j.db.bg.work(func() message {
		m := gate.Measure(j.db.bg.ctx, h, other, rules)
		h.Release()
		if other != nil {
			other.Release()
		}
		if m.Err != nil {
			_ = sleep.For(j.db.bg.ctx, measureRetry)
		}
		return func() {
			l.judged.measuring = false
			if j.db.live[l.in()] != l {
				return
			}
			l.judged.measures = &m
			if m.Err != nil {
				j.db.log.Warn("not all figures of a version can be read; they are read again", "version", l.in().Name, "error", m.Err)
			}
		}
	})
}
