package version

import (
	"fmt"
	"strconv"
	"strings"
)

// A version never changes, but a directory of the source may: a job without a
// marker pauses while it writes, or somebody repairs a file. Two nodes can then
// have planned one version by different files. The node whose files are not those
// of the source any more plans the version again, as a revision: to the state
// machine, the store and the view of the cluster that is another version, which is
// newer than the one before and older than every version of a greater name. So it
// is loaded, activated and removed like every version, and clients are answered
// from the one before until then.
//
// The id of a version on a node is its name, or for a revision the name, "+" and a
// number of five digits: 2026-01-31+00001. No name has a "+", and it sorts before
// every character that a name can have. Numbers are of one node: other nodes
// are told the name and the plan.

const revisionMark = "+"

// Name returns the name in the source of the version with an id.
func Name(id string) string {
	name, _, _ := strings.Cut(id, revisionMark)
	return name
}

// Revise returns the id of the revision after id.
func Revise(id string) string {
	name, number, _ := strings.Cut(id, revisionMark)
	n, _ := strconv.Atoi(number) // 0 for a name
	return fmt.Sprintf("%s%s%05d", name, revisionMark, n+1)
}
