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
	// Patience is the maximum latency of a node that is up.
	Patience time.Duration
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
	if v.Read == (Read{}) {
		return v.Rule + ": " + v.Why
	}
	r := v.Read
	return fmt.Sprintf("%s: %s [%v to %v, node %s, client %d, key %s: %d of version %q by way of %q: %.80q %s]",
		v.Rule, v.Why, r.Start, r.End, r.Node, r.Client, r.Key, r.Code, r.Version, r.Peer, r.Body, r.Err)
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
)

// Check returns the violations in a complete history, in order of time.
func Check(h *History, rules Rules) []Violation {
	c := &check{Rules: rules, timeline: newTimeline(h)}
	reads := slices.Clone(h.Reads)
	slices.SortFunc(reads, func(a, b Read) int { return cmp.Compare(a.Start, b.Start) })
	for _, r := range reads {
		c.one(r)
	}
	own := byNode(reads)
	for _, node := range rules.Nodes {
		c.monotonic(own[node])
		c.converges(node, own[node])
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return cmp.Compare(a.Read.Start, b.Read.Start) })
	return c.found
}

type check struct {
	Rules
	timeline
	found []Violation
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
	if r.End-r.Start > c.Patience && !c.paused(r) && !c.down(r) {
		c.violated(lateAnswer, r, "took %v", r.End-r.Start)
	}
	switch {
	case r.Code == 0:
		if !c.paused(r) && !c.down(r) {
			c.violated(noAnswer, r, "from a node that is up")
		}
	case r.Code == http.StatusOK, r.Code == http.StatusNotFound:
		c.answer(r)
	case r.Code == http.StatusServiceUnavailable && c.starting(r):
	case r.Code >= 500 && (c.unsafe(r) || c.paused(r)):
	default:
		c.violated(errorStatus, r, "while every partition had a live, reachable replica")
	}
}

// answer compares an answer with the content of its version.
func (c *check) answer(r Read) {
	if at, ok := c.published[r.Version]; !ok || at > r.End {
		c.violated(wrongAnswer, r, "version %q is not published yet", r.Version)
		return
	}
	want, exists := c.Value(r.Key, r.Version)
	switch {
	case exists && r.Code == http.StatusNotFound:
		c.violated(wrongAnswer, r, "the key exists: %.80q", want)
	case exists && r.Body != want:
		c.violated(wrongAnswer, r, "want %.80q", want)
	case !exists && r.Code == http.StatusOK:
		c.violated(wrongAnswer, r, "the key does not exist")
	}
}

// monotonic finds answers from an older version than an answer that was received
// before the request was sent. reads are those of one node, ordered by Start.
func (c *check) monotonic(reads []Read) {
	ended := slices.DeleteFunc(slices.Clone(reads), func(r Read) bool { return !answered(r) })
	slices.SortFunc(ended, func(a, b Read) int { return cmp.Compare(a.End, b.End) })
	var newest Read // of the reads that ended before the current one began
	next := 0
	for _, r := range reads {
		for next < len(ended) && ended[next].End < r.Start {
			if ended[next].Version > newest.Version {
				newest = ended[next]
			}
			next++
		}
		if answered(r) && r.Version < newest.Version {
			c.violated(wentBack, r, "client %d had version %q by %v", newest.Client, newest.Version, newest.End)
		}
	}
}

// answered reports whether a read shows the version of a node.
func answered(r Read) bool {
	return (r.Code == http.StatusOK || r.Code == http.StatusNotFound) && r.Version != ""
}

// converges finds answers from an old version after Convergence, and requires an
// answer from the newest version before that. reads are those of one node.
func (c *check) converges(node string, reads []Read) {
	for _, calm := range c.calm {
		if c.downAt(node, calm.At) {
			continue
		}
		limit, seen := calm.At+c.Convergence, false
		for _, r := range reads {
			switch {
			case !answered(r):
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
