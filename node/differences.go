package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sequins/internal/content"
	"sequins/version"
	"sequins/version/discovery"
)

// Two nodes can hold different contents of a version: if it has no marker and its job paused for longer than settle, or if it was modified. Replicas
// of one content are not counted and not asked by nodes that hold the other. A node that sees another content compares its own with the source, as it
// does after a switch (see check). If the source has another input, the node loads that, and answers clients from its own content until then.

// lookAtOthers lists the versions again if what other nodes hold of a version has changed since the last comparison.
func (ls *lister) lookAtOthers() {
	if ls.listing {
		return // called again at the end of the listing, which may have begun too early
	}
	others := make(map[content.Input]string)
	differ := false
	for in, l := range ls.db.keeper.live {
		var codes []string
		for c := range l.Elsewhere() {
			if c.Input != in {
				codes = append(codes, c.Code())
			}
		}
		if len(codes) > 0 && in.Name >= ls.db.facts.Current.Name {
			slices.Sort(codes)
			others[in] = strings.Join(codes, " ")
			differ = differ || ls.others[in] != others[in]
		}
	}
	ls.others = others
	if differ {
		ls.startListing(true)
	}
}

// reportWrong reports what is wrong for long enough.
func (ls *lister) reportWrong(before, now discovery.Listing) {
	wrong := make(map[content.Input]string)
	for in, f := range now.Wrong {
		if f.Lasts && ls.wrong[in] != f.Text {
			ls.db.log.Error(f.Text)
		}
		if f.Lasts {
			wrong[in] = f.Text
		}
	}
	ls.wrong = wrong
	for in, text := range now.Differs {
		if before.Differs[in] == "" {
			ls.db.log.Warn(text)
		}
	}
}

// divergence describes a current version whose files have changed; "" if they have not.
func (v *view) divergence(of *versionView) string {
	text := of.differs
	for _, other := range v.versions {
		switch {
		case text == "" || other.Name != of.Name || other.Input == of.Input:
		case other.Failure.Reason != "":
			text += "; that has failed: " + other.Failure.Reason
		case other.Verdict == version.Held:
			text += "; what the source has now is loaded and held: " + other.verdict.Reason
		}
	}
	return text
}

// problems describes the active versions of db whose files have changed, and those with something wrong.
func (v *view) problems(db string) (problems []string) {
	for i := range v.versions {
		switch of := &v.versions[i]; {
		case of.differs != "":
			problems = append(problems, v.divergence(of))
		case of.wrong != "":
			problems = append(problems, of.wrong)
		case of.verdict.Skipped != "":
			problems = append(problems, fmt.Sprintf("the gate of %s judges version %s without some of its rules: %s", db, of.Name, of.verdict.Skipped))
		case len(of.verdict.Otherwise) > 0:
			problems = append(problems, fmt.Sprintf("%s judges versions of %s by other rules than this node: configure the same [gate] on all nodes",
				strings.Join(of.verdict.Otherwise, ", "), db))
		}
	}
	return problems
}

// After a switch, the files of the version in the source are compared with those that it was loaded from: copy tools write _SUCCESS first,
// writers pause, and people change files. The pauses between comparisons double, also across reloads of one name, so that a job
// that rewrites its files again and again does not load the node again and again. Every node does it: the files of a local source are
// its own, and a node that cannot list them does not keep the others from it.

const (
	leastCheckPause = time.Second
	// longCheckPause is the longest of the doubling pauses; those after it are dailyCheck.
	longCheckPause = time.Hour
	dailyCheck     = 24 * time.Hour
)

// check is when a database compares what it serves with the source.
type check struct {
	name  string // of the served version, in the source
	pause time.Duration
	due   time.Time // zero: never
	timer timer     // for due
	asked int64     // requests to refresh that have been answered, see Node.asked
}

// checkSwitched schedules the first comparison after a switch to a version.
func (ls *lister) checkSwitched(name string) {
	if name != ls.check.name {
		ls.check.name, ls.check.pause = name, 0
	}
	ls.checkLater()
}

// checkLater schedules the next comparison.
func (ls *lister) checkLater() {
	switch c := &ls.check; {
	case c.pause == 0:
		c.pause = max(leastCheckPause, ls.db.node.reloadable.Load().Settle)
	case c.pause < longCheckPause:
		c.pause = min(2*c.pause, longCheckPause)
	default:
		c.pause = dailyCheck
	}
	ls.check.due = time.Now().Add(ls.check.pause)
	ls.check.timer.set(&ls.db.bg, ls.check.due, ls.checkIfDue)
}

// checkIfDue compares what is served with the source, if that is due. If a listing runs, its end does it.
func (ls *lister) checkIfDue() {
	if ls.checking() && !ls.listing {
		ls.beginListing(true, true)
	}
}

// checking reports whether the next listing compares what is served. It waits until the versions can be listed.
func (ls *lister) checking() bool {
	c := &ls.check
	return ls.db.facts.Source == version.Known && !ls.db.node.health.IsFailing(ls.db.name) && !c.due.IsZero() && (!time.Now().Before(c.due) || c.asked != ls.db.node.asked.Load())
}

// passedOver describes a version in the source that is not loaded because its name is less than that of the served one byte by byte,
// although its number is greater, as 10 is after 9; "" if there is none.
func (ls *lister) passedOver(in content.Input) string {
	name := in.Name
	if in != ls.db.facts.Current || ls.db.pin.Version != "" {
		return ""
	}
	for _, other := range ls.last.Names {
		if other >= name { // they are ascending
			break
		}
		if numberedAfter(other, name) {
			return fmt.Sprintf("version %s of %s is in the source and is not loaded: names are compared byte by byte, and %[1]s is less than %[3]s, which is served; write it with a greater name, such as a date or numbers of equal length",
				other, ls.db.name, name)
		}
	}
	return ""
}

// numberedAfter reports whether two names differ in the number at their ends alone, and that of a is greater.
func numberedAfter(a, b string) bool {
	const digits = "0123456789"
	stemA, stemB := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	a, b = strings.TrimLeft(a[len(stemA):], "0"), strings.TrimLeft(b[len(stemB):], "0")
	return stemA == stemB && cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}
