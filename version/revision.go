package version

import (
	"fmt"
	"strconv"
	"strings"
)

// A version is immutable, but its directory in the source may change: a job that
// writes no marker pauses, or somebody repairs a file. Then two nodes can have
// plans of one version with different files. The node whose plan does not match
// the source plans the version again. The new plan gets a new id, a revision. The
// state machine, the store and the cluster treat a revision as another version,
// newer than the previous revision and older than every version with a greater
// name. It is loaded, activated and removed like any version, and until then the
// previous revision answers clients.
//
// The id of a version on a node is its name. The id of a revision is the name, "#"
// and a number of five digits: 2026-01-31#00001. Names do not contain "#", which
// sorts before every character that they can contain. Each node numbers its own
// revisions: other nodes are told the name and the plan.

const revisionMark = "#"

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
