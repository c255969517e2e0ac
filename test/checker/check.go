package checker

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Rules configures the check of a history.
type Rules struct {
	// Nodes are all nodes; there must be reads of each.
	Nodes []string
	// Value returns the value of a key in a version; false if the key is absent.
	Value func(key, version string) (string, bool)
	// Keys returns all keys of a version in byte order. It may be nil if no ranges are read.
	Keys func(version string) []string
	// Contents returns the names by which Value and Keys know the contents that a version has had: its files in the source were replaced by others. Each
	// has a Publish of its own. With nil, each version has one content, and that has its name.
	Contents func(version string) []string
	// Patience is the maximum latency of a node that is up.
	Patience time.Duration
	// RangePatience is the same for ranges and counts, BatchPatience for batches; 0 means Patience.
	RangePatience, BatchPatience time.Duration
	// Convergence is how long after Calm every node that is up may still serve an
	// older version.
	Convergence time.Duration
}

// Violation is a read, or a lack of reads, that breaks a rule.
type Violation struct {
	Rule string
	Read Read // the read; zero for a lack of reads
	Why  string
}

// String returns v as one line.
func (v Violation) String() string {
	r := v.Read
	if r.Node == "" {
		return v.Rule + ": " + v.Why
	}
	return fmt.Sprintf("%s: %s [%v to %v, node %s, client %d, %s: %d of version %q by way of %q: %.80q %s]",
		v.Rule, v.Why, r.Start, r.End, r.Node, r.Client, r.asked(), r.Code, r.Version, r.Peer, r.Body, r.Err)
}

// asked describes the request.
func (r *Read) asked() string {
	s := "key " + r.Key
	switch r.Op {
	case Batch:
		s = fmt.Sprintf("batch of %d keys", len(r.Keys))
	case Range, Count:
		s = fmt.Sprintf("%s of %+v", r.Op, r.Bounds)
	}
	if r.Session != "" {
		s += " in session " + r.Session
	}
	if r.AtLeast != "" {
		s += " of at least " + r.AtLeast
	}
	if r.Exact != "" {
		s += " of exactly " + r.Exact
	}
	return s
}

// Names of the rules.
const (
	wrongAnswer  = "wrong answer"
	wentBack     = "went back"
	errorStatus  = "error status"
	noAnswer     = "no answer"
	lateAnswer   = "late answer"
	staysBehind  = "stays behind"
	nothingAsked = "nothing asked"
	refusal      = "refusal"
)

// Check returns the violations in a complete history, in order of time.
func Check(h *History, rules Rules) []Violation {
	c := &check{Rules: rules, timeline: newTimeline(h), sorted: map[string][]string{}}
	reads := slices.Clone(h.Reads)
	slices.SortStableFunc(reads, func(a, b Read) int { return cmp.Compare(a.Start, b.Start) })
	for _, r := range reads {
		c.one(r)
	}
	c.sessions(reads)
	own := byNode(reads)
	for _, node := range rules.Nodes {
		c.order(own[node])
		c.converges(node, own[node])
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return cmp.Compare(a.Read.Start, b.Read.Start) })
	return c.found
}

type check struct {
	Rules
	timeline
	found  []Violation
	sorted map[string][]string // Rules.Keys by version
}

func (c *check) violated(rule string, r Read, format string, args ...any) {
	c.found = append(c.found, Violation{rule, r, fmt.Sprintf(format, args...)})
}

func byNode(reads []Read) map[string][]Read {
	nodes := map[string][]Read{}
	for _, r := range reads {
		nodes[r.Node] = append(nodes[r.Node], r)
	}
	return nodes
}

// one checks a single read.
func (c *check) one(r Read) {
	patience := c.Patience
	switch r.Op {
	case Range, Count:
		patience = cmp.Or(c.RangePatience, patience)
	case Batch:
		patience = cmp.Or(c.BatchPatience, patience)
	}
	patience += time.Duration(r.Behind) * max(c.Patience, c.BatchPatience)
	if r.End-r.Start-c.stalled(r) > patience && !c.paused(r) && !c.down(r) {
		c.violated(lateAnswer, r, "took %v", r.End-r.Start)
	}
	switch {
	case r.Code == 0:
		if !c.paused(r) && !c.down(r) && !(r.Op == Range && c.unsafe(r)) { // a long answer can only break off
			c.violated(noAnswer, r, "from a node that is up")
		}
	case r.Code == http.StatusOK, r.Code == http.StatusNotFound && r.Op == Get:
		c.answer(r)
	case r.Code == http.StatusServiceUnavailable && c.starting(r):
	case refused(r): // see order
	case r.Code >= 500 && (c.unsafe(r) || c.paused(r)):
	case (r.Code == http.StatusGatewayTimeout || r.Code == http.StatusBadGateway) && c.stalled(r) > c.Patience/4:
	default:
		c.violated(errorStatus, r, "while every partition had a live, reachable replica")
	}
}

// converges finds answers from an old version after Convergence, and requires an
// answer from the newest version before that. reads are those of one node.
func (c *check) converges(node string, reads []Read) {
	for _, calm := range c.calm {
		if c.downAt(node, calm.At) {
			continue
		}
		limit, seen, latest := calm.At+c.Convergence, false, ""
		for _, r := range reads {
			if showsCurrent(r) {
				latest = max(latest, r.Version)
			}
			switch {
			case r.Code == http.StatusGone && latest > r.Exact: // its cursor has expired
			case refused(r):
				if r.AtLeast != "" && r.AtLeast <= calm.Version && r.Start > limit && !c.starting(r) {
					c.violated(staysBehind, r, "%v after the last fault; version %q was complete", r.Start-calm.At, calm.Version)
				}
			case !showsCurrent(r):
			case r.Version >= calm.Version:
				seen = seen || calm.At <= r.End && r.End <= limit
			case r.Start > limit:
				c.violated(staysBehind, r, "%v after the last fault; version %q was complete", r.Start-calm.At, calm.Version)
			}
		}
		if !seen {
			c.found = append(c.found, Violation{Rule: nothingAsked,
				Why: fmt.Sprintf("node %s gave no answer from %q between %v and %v", node, calm.Version, calm.At, limit)})
		}
	}
}
