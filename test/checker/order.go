package checker

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// order checks what depends on other answers of the same node. It finds answers from an older version than an answer that
// was received before the request was sent, and refusals of versions that the node serves. reads are those of one node,
// ordered by Start.
func (c *check) order(reads []Read) {
	ended := slices.DeleteFunc(slices.Clone(reads), func(r Read) bool { return !answered(r) })
	slices.SortFunc(ended, func(a, b Read) int { return cmp.Compare(a.End, b.End) })
	last := lastStarts(reads)
	var newest Read // of the reads that ended before the current one began
	next := 0
	for _, r := range reads {
		for next < len(ended) && ended[next].End < r.Start {
			if ended[next].Version >= newest.Version || c.mayGoBack(newest, ended[next]) {
				newest = ended[next]
			}
			next++
		}
		switch {
		case c.mayGoBack(newest, r):
		case showsCurrent(r) && r.Version < newest.Version:
			c.violated(wentBack, r, "client %d had version %q by %v", newest.Client, newest.Version, newest.End)
		case !refused(r) || newest.Version == "" || c.starting(r) || c.unsafe(r) || c.paused(r):
		case r.After != "" && len(c.names(r.Exact)) > 1: // the node may not have switched to the content of the cursor, or not have it any more
		case r.Code == http.StatusServiceUnavailable && r.AtLeast <= newest.Version:
			c.violated(refusal, r, "client %d had version %q by %v", newest.Client, newest.Version, newest.End)
		case r.Code != http.StatusServiceUnavailable && r.Exact == newest.Version && last[r.Exact] > r.End:
			c.violated(refusal, r, "the node served that version from %v to %v", newest.End, last[r.Exact])
		}
	}
}

// lastStarts returns the start of the last read that shows a version to be current, by version.
func lastStarts(reads []Read) map[string]time.Duration {
	last := map[string]time.Duration{}
	for _, r := range reads {
		if showsCurrent(r) {
			last[r.Version] = r.Start
		}
	}
	return last
}

// sessions finds answers from an older version than an earlier one in the same session. reads are those of all nodes,
// ordered by Start.
func (c *check) sessions(reads []Read) {
	newest := map[string]Read{}
	for _, r := range reads {
		if r.Session == "" || !showsCurrent(r) {
			continue
		}
		if n := newest[r.Session]; r.Version < n.Version && !c.mayGoBack(n, r) {
			c.violated(wentBack, r, "the session had version %q of node %s by %v", n.Version, n.Node, n.End)
			continue
		}
		newest[r.Session] = r
	}
}

// answered reports whether a node has answered from a version. Its current version is that one or a newer one.
func answered(r Read) bool {
	return (r.Code == http.StatusOK || r.Code == http.StatusNotFound) && r.Version != ""
}

// showsCurrent reports whether r shows the current version of a node.
func showsCurrent(r Read) bool { return answered(r) && r.Exact == "" }

// refused reports whether a node has answered that it does not have the version that the request names.
func refused(r Read) bool {
	switch r.Code {
	case http.StatusServiceUnavailable:
		return r.AtLeast != ""
	case http.StatusPreconditionFailed:
		return r.Exact != "" && r.After == ""
	case http.StatusGone:
		return r.Exact != "" && r.After != ""
	}
	return false
}
