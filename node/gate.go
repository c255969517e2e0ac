package node

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"sequins/gate"
	"sequins/version"
)

// measureRetry is the pause after figures could not be read. A damaged block is loaded again meanwhile.
const measureRetry = 5 * time.Second

// newGate returns the gate of a database with what is known from before a restart.
func (d *db) newGate() *gate.Gate {
	data, err := d.node.o.Store.Gate(d.name)
	record, invalid := gate.ParseRecord(data)
	if err := errors.Join(err, invalid); err != nil {
		d.log.Error("it is not known which versions were held before the restart; they are judged again", "error", err)
	}
	d.heldBefore, d.formerly = record.HeldIDs(), record.ServedIDs()
	return gate.New(record)
}

// rules returns the rules of a database.
func (n *Node) rules(db string) gate.Rules {
	if rules := n.reloadable.Load().Gate; rules != nil {
		return rules(db)
	}
	return gate.Rules{}
}

// followRules takes over rules that have changed.
func (d *db) followRules() {
	rules := d.node.rules(d.name)
	if rules.Equal(d.rules) {
		return
	}
	d.rules = rules
	d.node.o.shadows.Stop(d.name)
	for _, l := range d.live {
		l.shadow = nil // reads are compared anew
	}
}

// judge decides whether a version may be advertised and served, and publishes what this node thinks of it.
func (d *db) judge(l *live, held []bool) gate.Verdict {
	before := l.verdict
	if d.gate.SetRules(d.rules) {
		l.verdict = d.gate.Judge(d.candidate(l, held))
		d.keepJudgements()
	} else {
		l.verdict = gate.Verdict{State: gate.Passed}
		d.markServed(l)
	}
	v := l.verdict
	l.v.Withhold(!v.MayServe())
	if !bytes.Equal(v.Report, before.Report) {
		l.Report(v.Report)
	}
	if v.Measure && !l.measuring {
		d.measure(l, v.Served)
	}
	switch {
	case v.MayServe() && !before.MayServe() && d.node.admitted.Load():
		l.tell()
	case !v.MayServe() && before.MayServe():
		l.Withdraw()
	}
	d.tellVerdict(l, before)
	if v.Shadow && l.shadow == nil {
		d.startShadow(l)
	}
	return v
}

// startShadow begins to compare reads of clients with a version, unless that is done with a newer one. It ends the
// comparison with an older one, which begins anew if it is needed then.
func (d *db) startShadow(l *live) {
	for _, other := range d.live {
		switch {
		case other.shadow == nil || !other.verdict.Shadow:
		case other.v.Info().Name > l.v.Info().Name:
			return
		default:
			other.shadow = nil
		}
	}
	l.shadow = d.node.o.shadows.Start(d.name, gate.Acquire(d.set, d.live[d.state.Current].v), gate.Acquire(d.set, l.v),
		d.rules.ShadowReads, func() { wake(d.survey) })
	l.shadowEnd = false
	d.tellAfter(d.rules.ShadowTimeout, shadowOver{l, l.shadow})
}

// shadowOver reports that the time for which reads of clients are compared with a version is over.
type shadowOver struct {
	l      *live
	shadow *gate.Shadow
}

// tell implements message.
func (s shadowOver) tell(d *db) {
	if name := s.l.v.Info().Name; d.live[name] == s.l && s.l.shadow == s.shadow {
		s.l.shadowEnd = true
		reads := s.shadow.Sample()
		d.log.Info("the time for comparing reads is over", "version", name, "reads", reads.Keys, "differing", reads.Missing)
		d.look(name)
	}
}

// tellVerdict tells of a change of the judgement that somebody may have to know. When a version is held, older ones may be
// needed that have not been listed, and reads of clients may be compared with another one.
func (d *db) tellVerdict(l *live, before gate.Verdict) {
	v, name := l.verdict, l.v.Info().Name
	switch {
	case v.State == gate.Held && before.State != gate.Held:
		if !v.Known { // otherwise that was told before
			d.events.Held(name, v.Reason)
		}
		d.startListing(true)
		d.tellAfter(0, rejudged{})
	case v.State == gate.Passed && v.Excused && before.State == gate.Held:
		d.events.Approved(name, v.Reason)
	}
}

// candidate describes a version to the gate.
func (d *db) candidate(l *live, held []bool) gate.Candidate {
	info, s := l.v.Info(), &d.state
	c := gate.Candidate{ID: info.Name, Plan: info.Plan, Held: held, Settled: d.loads[info.Name] == nil,
		Active: info.Name == s.Current, Served: s.Current, Deciding: s.Deciding() && info.Name != s.Served,
		Older: info.Name < max(s.Current, s.Served)}
	switch {
	case info.Name == s.Served && s.Taken:
		c.Excused = "other nodes serve it"
	case info.Name == s.Served && !s.Likely:
		c.Excused = "it was served before a restart"
	case s.Pin.Version == version.Name(info.Name):
		c.Excused = "it is pinned"
	case s.Pin.Excuses(info.Name):
		c.Excused = "it is approved"
		if d.pin.By != "" {
			c.Excused += " (by " + d.pin.By + ")"
		}
	}
	if l.shadow != nil {
		c.Shadow, c.ShadowOver = l.shadow.Sample(), l.shadowEnd
	}
	c.Reports, c.Known = l.Reports()
	if c.Served == "" {
		c.Elsewhere = d.elsewhere(info.Name)
	}
	d.askAbout(l, &c)
	return c
}

// elsewhere returns the newest version older than id that another node serves and has a judgement of, "" if there is none:
// that node can compare.
func (d *db) elsewhere(id string) string {
	for _, v := range slices.Backward(d.state.Entries) {
		if f := d.facts[v.Name].following; v.Name < id && f != nil {
			if reports, known := f.Reports(); !known || gate.AnyServes(reports) {
				return version.Name(v.Name)
			}
		}
	}
	return ""
}

// keepJudgements records what the gate has to remember over restarts. If that fails, it is tried again at the next look.
func (d *db) keepJudgements() {
	err := d.gate.Save(func(data []byte) error { return d.node.o.Store.SetGate(d.name, data) })
	if err != nil && !d.unkept {
		d.log.Error("it cannot be recorded which versions are held and which were served; after a restart they are judged again, and former versions may not be kept", "error", err)
	}
	d.unkept = err != nil
}

// markServed records that a version is served if it may be kept when another one replaces it: after a restart it is not
// known otherwise that a version was served that lacks partitions, as it does while another node is down.
func (d *db) markServed(l *live) {
	if info := l.v.Info(); info.Name == d.state.Current && d.keep() > 1 {
		d.gate.Served(info.Name, info.Plan)
		d.keepJudgements()
	}
}

// measure reads the figures of a version in the background.
func (d *db) measure(l *live, served string) {
	h := gate.Acquire(d.set, l.v)()
	if h == nil {
		return
	}
	var other *version.Handle
	if s := d.live[served]; s != nil {
		other = gate.Acquire(d.set, s.v)()
	}
	l.measuring = true
	rules := d.rules
	d.work(func() message {
		m, err := gate.Measure(d.ctx, h, other, rules)
		h.Release()
		if other != nil {
			other.Release()
		}
		if err != nil {
			d.pause(measureRetry)
		}
		return measured{l, served, rules, m, err}
	})
}

// measured reports the figures of a version.
type measured struct {
	live   *live
	served string
	rules  gate.Rules
	gate.Measured
	err error
}

// tell implements message. The figures of one version can decide on another.
func (m measured) tell(d *db) {
	m.live.measuring = false
	name := m.live.v.Info().Name
	if d.live[name] != m.live {
		return
	}
	d.gate.Measured(name, m.served, m.rules, m.Measured, m.err)
	if m.err != nil {
		d.log.Warn("not all figures of a version can be read; they are read again", "version", name, "error", m.err)
	}
	d.lookAtAll()
}

// rejudged reports that what all versions are judged by has changed.
type rejudged struct{}

// tell implements message.
func (rejudged) tell(d *db) { d.lookAtAll() }

// lookAtAll reports the state of all versions to the state machine, the active one first.
func (d *db) lookAtAll() {
	d.look(d.state.Current)
	for name := range d.live {
		if name != d.state.Current {
			d.look(name)
		}
	}
}
