package node

import (
	"bytes"
	"slices"
	"time"

	"sequins/gate"
	"sequins/internal/content"
	"sequins/store"
)

// measureRetry is the pause after figures could not be read. A damaged block is loaded again meanwhile.
const measureRetry = 5 * time.Second

// rules returns the rules of a database.
func (n *Node) rules(db string) gate.Rules {
	if rules := n.reloadable.Load().Gate; rules != nil {
		return rules(db)
	}
	return gate.Rules{}
}

// followRules takes over rules that have changed. What was judged by the others is judged again.
func (d *db) followRules() {
	if rules := d.node.rules(d.name); rules.Fingerprint() != d.rules.Fingerprint() {
		d.rules = rules
		for _, l := range d.live {
			l.waitUntil = time.Time{}
		}
	}
}

// judge decides whether a version may be advertised and served, and publishes what this node finds.
func (d *db) judge(l *live, held []bool) gate.Verdict {
	before := l.verdict
	if l.content() == d.servedContent() && d.memory.Totals == nil {
		d.learnTotals(l)
	}
	l.verdict = d.verdict(l, held)
	v := l.verdict
	l.v.Withhold(!v.MayServe())
	d.report(l)
	switch {
	case v.MayServe() && !before.MayServe() && d.node.admitted.Load():
		l.tell()
	case !v.MayServe() && before.MayServe():
		l.Withdraw()
	}
	if v.State == gate.Held && before.State != gate.Held { // older versions may be needed that have not been listed
		d.startListing(true)
		d.tellAfter(0, rejudged{})
	}
	if v.Skipped != "" && before.Skipped == "" {
		d.log.Warn("rules of the gate cannot be applied", "version", l.in().Name, "reason", v.Skipped)
	}
	return v
}

// verdict returns the verdict on a version. What is served, or was, is not judged again.
func (d *db) verdict(l *live, held []bool) gate.Verdict {
	c := l.content()
	served, totals := d.compared(c)
	if d.rules.IsZero() || c == served || d.facts.WasServed(c.Input) && !d.facts.Likely {
		return gate.Verdict{State: gate.Passed}
	}
	older := c.Name < max(d.facts.Current.Name, d.facts.Before().Name)
	f := gate.Facts{Rules: d.rules, Held: held, Mixed: d.node.o.Cluster.Mixed(), Own: l.measures, Failure: l.unmeasured, Served: served, Older: older,
		Before: d.verdictBefore(c), Waited: !l.waitUntil.IsZero() && !time.Now().Before(l.waitUntil)}
	if totals != nil {
		f.Totals = &gate.Figures{Records: totals.Records, Bytes: totals.Bytes}
	}
	f.Reports, f.Known = d.reports(l)
	switch {
	case d.facts.Pin.Version == c.Name:
		f.Excused = "it is pinned"
	case d.facts.Pin.Excuses(c.Name):
		f.Excused = "it is approved"
		if d.pin.By != "" {
			f.Excused += " (by " + d.pin.By + ")"
		}
	case slices.Contains(d.memory.Former, c):
		f.Excused = "this node has served it before"
	}
	against := served
	if older {
		against = content.Content{}
	}
	if d.loads[c.Input] == nil && !l.measuring && !l.measures.IsCurrent(held, d.rules, against) {
		d.measure(l, against)
	}
	v := gate.Judge(f)
	if v.State == gate.Passed && d.facts.Likely && d.facts.Deciding() && f.Excused == "" && c.Input != d.facts.Before() {
		v.State, v.Finding.State, v.Reason = gate.Pending, gate.Pending, "it is not decided yet which version is served"
	}
	if v.State == gate.Passed && older && f.Excused == "" && f.Before == nil && !f.Waited && d.awaitsOthers(f.Reports) {
		v.State, v.Waits, v.Reason = gate.Pending, true, "it is older than what is served, and other nodes, which may have held it, have not judged it yet"
	}
	if v.State != gate.Pending {
		d.keepVerdict(c, v)
	} else if v.Waits && l.waitUntil.IsZero() {
		l.waitUntil = time.Now().Add(gate.MaxWait)
		d.tellAfter(gate.MaxWait, rejudged{})
	}
	return v
}

// awaitsOthers reports whether a node with the same rules that has what is served has not judged another content, of which these are the reports.
func (d *db) awaitsOthers(reports map[string]gate.Report) bool {
	l := d.live[d.facts.Current]
	if l == nil {
		return false
	}
	have, _ := d.reports(l)
	for addr, r := range have {
		if other, found := reports[addr]; r.Rules == d.rules.Fingerprint() && (!found || other.Finding.State == gate.Pending) {
			return true
		}
	}
	return false
}

// compared returns what a content is compared with, and its totals, nil if they are not known: what is served or, if it is not known what was served
// before a restart, the newest older content of which all figures are known.
func (d *db) compared(c content.Content) (served content.Content, totals *store.Totals) {
	served = d.servedContent()
	switch l := d.live[served.Input]; {
	case served.Name != "" && served == d.memory.Served:
		return served, d.memory.Totals
	case l != nil:
		return served, d.totals(l)
	case !d.facts.Likely:
		return served, nil
	}
	for in, l := range d.live {
		if t := d.totals(l); t != nil && in.Name < c.Name && in.Name > served.Name {
			served, totals = l.content(), t
		}
	}
	return served, totals
}

// servedContent returns what this node serves, or served before its restart.
func (d *db) servedContent() content.Content {
	if d.facts.Current == d.memory.Served.Input || d.facts.Current.Name == "" && !d.facts.Likely {
		return d.memory.Served
	}
	return d.set.Current()
}

// reports returns what the other nodes report of a version, and whether that is known.
func (d *db) reports(l *live) (map[string]gate.Report, bool) {
	data, known := l.Reports()
	return l.parser.Parse(data), known
}

// totals returns the totals of a version; nil if not all of its figures are known.
func (d *db) totals(l *live) *store.Totals {
	reports, _ := d.reports(l)
	t, unknown := gate.Sum(len(l.open), l.known(), reports)
	if len(unknown) > 0 {
		return nil
	}
	return &store.Totals{Records: t.Records, Bytes: t.Bytes}
}

// learnTotals adds the totals of the version that is served to the memory as soon as they are known.
func (d *db) learnTotals(l *live) {
	if t := d.totals(l); t != nil {
		d.memory.Totals = t
		d.saveSoon()
	}
}

// report publishes what this node reports of a version, if that has changed.
func (d *db) report(l *live) {
	if d.node.o.Cluster.Changes() == nil {
		return // there are no other nodes
	}
	found := l.verdict.Finding
	if before := d.verdictBefore(l.content()); before != nil && d.facts.WasServed(l.in()) {
		found = *before
	}
	r := gate.NewReport(l.content(), d.servedContent(), d.rules, l.known(), found)
	r.Loading = d.loads[l.in()] != nil
	data, err := r.Encode()
	switch {
	case err != nil && !l.unreported:
		l.unreported = true
		d.log.Error("what this node holds of a version cannot be reported to other nodes", "version", l.in().Name, "error", err)
	case err == nil && !bytes.Equal(data, l.reported):
		l.reported = data
		l.Report(data)
	}
}

// measure reads the figures of a version in the background, and compares it with another one, or with none.
func (d *db) measure(l *live, against content.Content) {
	h := d.set.AcquireVersion(l.in().Name, l.content().Code())
	if h == nil {
		return
	}
	other := d.set.AcquireVersion(against.Name, against.Code())
	l.measuring = true
	rules, known := d.rules, slices.Clone(l.figures)
	d.work(func() message {
		m, err := gate.Measure(d.ctx, h, other, rules, known)
		h.Release()
		if other != nil {
			other.Release()
		}
		if err != nil {
			d.pause(measureRetry)
		}
		return measured{l, m, err}
	})
}

// measured reports the figures of a version.
type measured struct {
	live     *live
	measures gate.Measures
	err      error
}

// tell implements message.
func (m measured) tell(d *db) {
	l := m.live
	l.measuring = false
	if d.live[l.in()] != l {
		return
	}
	l.measures, l.unmeasured = &m.measures, m.err
	if m.err != nil {
		d.log.Warn("not all figures of a version can be read; they are read again", "version", l.in().Name, "error", m.err)
	}
	d.lookAtAll()
}

// rejudged reports that what all versions are judged by has changed.
type rejudged struct{}

// tell implements message.
func (rejudged) tell(d *db) { d.lookAtAll() }

// lookAtAll reports the state of all versions into the facts, the active one first.
func (d *db) lookAtAll() {
	d.look(d.facts.Current)
	for in := range d.live {
		if in != d.facts.Current {
			d.look(in)
		}
	}
}
