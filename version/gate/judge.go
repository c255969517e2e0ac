package gate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/store"
	"sequins/version/report"
)

// MaxWait is how long a verdict may have Waits before Facts.Waited is set.
const MaxWait = time.Minute

// Facts are what the verdict on a content depends on.
type Facts struct {
	Rules Rules
	// Held reports for each partition whether it is on this node.
	Held []bool
	// Figures are those of the blocks on this node, by partition.
	Figures map[int]report.Figures
	// Own are the measures of the held partitions, maybe not the current ones; nil if there are none yet.
	Own *Measures
	// Reports are those of the other nodes, by address; Known, whether they are known.
	Reports map[string]report.Report
	Known   bool
	// Mixed: nodes of the original sequins, which do not report, may hold partitions.
	Mixed bool
	// Served is the content that this node serves, zero if there is none, and Totals are its totals; nil if they are not known.
	Served content.Content
	Totals *store.Totals
	// Sampled is the content whose keys are looked up in the one that is judged: Served, or zero if that is not to be compared with, or if no key
	// of it can be read here, as after its blocks were lost.
	Sampled content.Content
	// Waited: MaxWait is over since a verdict on this content by these rules, beside what is served, had Waits for the first time.
	Waited bool
	// Excused is why the content need not keep the rules, such as a pin; "" if it must.
	Excused string
	// Older: its name is less than that of the content that is served or was served before a restart. It is then not compared with that content,
	// which people do not want.
	Older bool
	// Undecided: it is not decided yet which version is served after a restart, and this is not the one that was.
	Undecided bool
	// Fellows are the nodes with the same rules that have what is served: they may have held an older content when it came.
	Fellows []string
	// Before is Verdict.Finding of a verdict that was not Pending, maybe from before a restart; nil if there is none.
	Before *store.Finding
}

// judge is Facts with what follows from them.
type judge struct {
	Facts
	fingerprint string
	nodes       []string // that have reported, ascending
	// against is the content to compare with; zero for none.
	against content.Content
}

// Judge returns the verdict on a content that this node does not serve. In this order: an excuse passes it, a veto holds it, the findings of the
// nodes that have compared it with the content of the greatest name decide, and then what this node finds.
func Judge(f Facts) Verdict {
	if f.Rules.IsZero() {
		return Verdict{Finding: store.Finding{State: store.Passed}, Own: store.Finding{State: store.Passed}}
	}
	j := judge{Facts: f, fingerprint: f.Rules.Fingerprint(), nodes: slices.Sorted(maps.Keys(f.Reports))}
	if !f.Older {
		j.against = f.Served
	}
	v := j.decide()
	if v.State != v.Own.State && !v.Excused {
		// Reported as it is, it could mislead a node that does not see yet what has overruled it.
		v.Own = store.Finding{State: store.Pending, Reason: v.Reason, Rules: j.fingerprint}
	}
	return v
}

// decide returns the verdict of the first reason that applies.
func (j judge) decide() Verdict {
	v := j.find()
	v = v.take(v.Own, "")
	if j.Excused != "" {
		v.Finding, v.Excused, v.Waits, v.Skipped = store.Finding{State: store.Passed, Reason: j.Excused}, true, false, ""
		return v
	}
	if v.Vetoed {
		return v
	}
	for _, node := range j.nodes {
		if r := j.Reports[node].Finding; r.Vetoed && r.Rules == j.fingerprint {
			return v.take(r, node)
		}
	}
	v = j.follow(v)
	if before := j.before(); v.State == store.Pending && before != nil {
		v = v.take(*before, "")
	}
	return j.await(v)
}

// take makes a finding of another node, or of this one if node is "", the verdict.
func (v Verdict) take(f store.Finding, node string) Verdict {
	v.Finding = f
	v.Vetoed = v.Own.Vetoed // the veto of another node is its own
	switch {
	case node != "" && f.State == store.Passed:
		v.Reason = "node " + node + " has passed it"
	case node != "":
		v.Reason = "node " + node + " holds it: " + f.Reason
	}
	if f != v.Own {
		v.Waits, v.Skipped = false, ""
	}
	return v
}

// before returns the verdict from before, if it was by the present rules and in comparison with what is served, or with a newer content. It stands
// while there is no other one: after a restart, until the blocks have been measured.
func (j judge) before() *store.Finding {
	b := j.Before
	if b == nil || b.State == store.Pending || b.Rules != j.fingerprint || !b.Vetoed && b.Against.Name < j.against.Name {
		return nil
	}
	return b
}

// find returns what this node finds by itself: Own, Checks, Waits and Skipped of a verdict.
func (j judge) find() Verdict {
	measured := maps.Clone(j.Reports)
	maps.DeleteFunc(measured, func(_ string, r report.Report) bool { return r.Finding.State == store.Pending && !r.Measured })
	totals, unknown := report.Sum(len(j.Held), j.Figures, measured)
	current := j.Own.IsCurrent(j.Held, j.Rules, j.Sampled)
	v := Verdict{Measured: current, Checks: j.Rules.ofBlocks(totals.Largest, j.Own, current)}
	f := &v.Own
	f.Rules, f.Vetoed = j.fingerprint, broken(v.Checks) != ""
	if before := j.before(); before != nil && !f.Vetoed && (j.Older || before.Vetoed && !current) {
		v.Own = *before
		return v
	}
	pending, waits := j.pending(current, unknown)
	switch {
	case pending != "":
	case len(unknown) > 0:
		v.Skipped = "only the rules of single blocks are applied: nodes of the original sequins hold partitions and do not report their figures"
	default:
		served, sample := j.served()
		if served != nil {
			f.Against = j.against
		}
		applied := j.Rules
		if rules, why := j.lost(); why != "" {
			v.Skipped, applied.MaxMissing = rules+" not applied: "+why, 0
		}
		v.Checks = append(v.Checks, applied.ofContent(totals, served, sample)...)
	}
	switch f.Reason = broken(v.Checks); {
	case f.Reason != "":
		f.State = store.Held
	case pending != "":
		f.State, f.Reason, v.Waits = store.Pending, pending, waits
	default:
		f.State = store.Passed
	}
	return v
}

// pending returns why the content cannot be judged yet, "" if it can, and whether that ends with Waited.
func (j judge) pending(current bool, unknown []int) (reason string, waits bool) {
	switch {
	case !current && j.Own != nil && j.Own.Err != nil:
		return fmt.Sprintf("its figures cannot be read, and are read again: %v", j.Own.Err), false
	case !current:
		return "its figures are being read", false
	case !j.Known:
		return "it is not known yet what other nodes report", false
	case len(unknown) > 0 && !(j.Mixed && j.Waited):
		return "the figures of " + human.Plural(len(unknown), "partition") + " are not known yet: " + human.Ranges(unknown), j.Mixed
	case !j.Waited:
		_, reason = j.lost()
	}
	return reason, reason != ""
}

// lost returns which of the rules that compare with what is served cannot be applied, and why; "" if all can, or need not be.
func (j judge) lost() (rules, why string) {
	_, sample := j.served()
	switch {
	case j.against.Name == "":
	case j.Totals == nil && j.Rules.compare():
		return "max_shrink, max_growth and max_missing are", "the totals of version " + j.against.Name + ", which is served, are not known"
	case j.Sampled != j.against && j.Rules.MaxMissing > 0 && sample.Keys == 0 && j.Totals.Records > 0:
		return "max_missing is", "no node has keys of version " + j.against.Name + ", which was served, to look up"
	}
	return "", ""
}

// served returns the totals of the content to compare with, nil if there are none, and the sum of the samples of its keys.
func (j judge) served() (*store.Totals, report.Sample) {
	if j.against.Name == "" {
		return nil, report.Sample{}
	}
	s := j.Own.Sample
	for _, r := range j.Reports {
		if r.Served == j.against {
			s.Keys += r.Sample.Keys
			s.Missing += r.Sample.Missing
		}
	}
	return j.Totals, s
}

// follow applies the findings of the nodes that have compared the content with that of the greatest name. One of them that has passed it is enough.
// So a node that was away, and serves an old version or none, follows those that know the newer one.
func (j judge) follow(v Verdict) Verdict {
	greatest := v.Own.Against.Name
	for _, r := range j.Reports {
		if j.hasCompared(r) {
			greatest = max(greatest, r.Finding.Against.Name)
		}
	}
	for _, state := range []string{store.Passed, store.Held} {
		if v.Own.State == state && v.Own.Against.Name == greatest {
			return v
		}
		for _, node := range j.nodes {
			if r := j.Reports[node]; j.hasCompared(r) && r.Finding.State == state && r.Finding.Against.Name == greatest {
				return v.take(r.Finding, node)
			}
		}
	}
	return v
}

// hasCompared reports whether another node has judged the content by the same rules, in comparison with one that is not older than what this node
// compares with.
func (j judge) hasCompared(r report.Report) bool {
	f := r.Finding
	return f.Rules == j.fingerprint && f.State != store.Pending && f.Against.Name != "" && f.Against.Name >= j.against.Name
}

// await makes a content that would pass wait until it is decided what is served, and for nodes that know more than this one and have not judged it
// yet: one that serves a newer version than the one that decided or, for an older content, any that has what is served.
func (j judge) await(v Verdict) Verdict {
	if v.State != store.Passed {
		return v
	}
	pending := func(node string) bool {
		r, reports := j.Reports[node]
		return !reports || r.Finding.State == store.Pending
	}
	newer := func(node string) bool {
		r := j.Reports[node]
		return r.Rules == j.fingerprint && r.Finding.State == store.Pending && r.Served.Name > max(v.Against.Name, j.Served.Name)
	}
	switch i := slices.IndexFunc(j.nodes, newer); {
	case j.Undecided:
		v.Reason = "it is not decided yet which version is served"
		v.Own.State = store.Pending
	case j.Waited:
		return v
	case j.Older && j.Before == nil && slices.ContainsFunc(j.Fellows, pending):
		v.Waits, v.Reason = true, "it is older than what is served, and other nodes, which may have held it, have not judged it yet"
	case !j.Older && i >= 0:
		v.Waits, v.Against = true, content.Content{}
		v.Reason = fmt.Sprintf("node %s serves version %s and has not judged this one yet", j.nodes[i], j.Reports[j.nodes[i]].Served.Name)
	default:
		return v
	}
	v.State = store.Pending
	return v
}
