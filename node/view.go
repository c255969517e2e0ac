package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/load/loadproc"
	"sequins/observe/status"
	"sequins/store"
	"sequins/version"
	"sequins/version/gate"
	"sequins/version/pin"
)

// A view is a snapshot of a db for the status. It is immutable, and the objects it points to are safe for concurrent use.
type view struct {
	node       *shared
	db         string
	atStart    bool // it was in the source or on disk when the node started
	away       bool // the node had not joined when it was opened
	facts      version.Facts
	versions   []versionView   // of the entries of facts
	serving    content.Content // what is served, or was before a restart
	tried      bool            // its versions were listed, and all have failed through their own fault; not if it is not known what was served
	restored   bool            // what is on the disk has been looked at
	whole      bool            // every partition of the current version has been on some node at least once
	pin        *pin.File
	unfinished string // the newest incomplete version, and the reason
}

type versionView struct {
	version.Entry
	status    version.Status
	known     record
	failure   store.Failure    // the last one; see memory
	differs   string           // how its files in the source differ from those that it was loaded from; "" if they do not
	wrong     string           // what else is wrong with it
	live      *version.Version // nil if not in the set
	sizes     []int64          // of its blocks, see version.Version.Sizes: a replaced version loses them before there is another view
	verdict   gate.Verdict
	records   int64
	loading   *loading // nil if not being loaded
	postponed string   // the window that the load waits for; "" if it does not
}

// served reports whether a version is served, or was before a restart.
func (v *view) served() bool { return v.facts.Current.Name != "" || v.facts.Before().Name != "" }

// isEmpty reports whether nothing of a db was ever served here, no block of it is here, and no load of it reads its files.
func (v *view) isEmpty() bool {
	for _, version := range v.versions {
		if version.live != nil && slices.Contains(version.live.Held(), true) || version.loading != nil && version.loading.stage.Load() > waitingForTurn {
			return false
		}
	}
	return (v.facts.Source == version.Known || v.tried || v.isBare()) && !v.served()
}

// isBare reports whether nothing of a db was on the disk, as after a crash during its removal, and nothing comes from elsewhere.
func (v *view) isBare() bool {
	return v.restored && v.facts.Taken.Name == "" && !slices.ContainsFunc(v.facts.Entries, version.Entry.IsHere)
}

// status returns the status of the database.
func (v *view) status() status.DB {
	s := status.DB{Versions: make(map[string]status.Version, len(v.versions)), Error: v.problem(), Pin: v.pin}
	n := v.node
	for i, vv := range v.versions { // those of one name in the order in which they were found: the status shows the current one, or else the last
		if _, shown := s.Versions[vv.Name]; shown && vv.Name == v.facts.Current.Name && vv.Input != v.facts.Current {
			continue
		}
		vs := status.Version{
			Path:              n.o.Source.Path(v.db, vv.Name),
			TargetReplication: n.o.Replication,
			Nodes:             map[string]status.OnNode{n.o.Name: v.onNode(&v.versions[i])},
		}
		if vv.live != nil {
			vs.NumPartitions, vs.Replicas = len(vv.sizes), make([]int, len(vv.sizes))
			for p, size := range vv.sizes {
				vs.Replicas[p] = vv.live.Following.Replicas(p)
				if !v.node.joined.Load() { // then nodes that are remembered are all that is known
					vs.Replicas[p] = len(vv.live.Following.Peers(p))
				}
				if size > 0 {
					vs.Replicas[p]++
				}
			}
		}
		s.Versions[vv.Name] = vs
	}
	return s
}

// problem returns why a db has nothing to serve; "" if it may have soon.
func (v *view) problem() string {
	switch {
	case v.facts.Current.Name != "" || len(v.facts.Listed) > 0 || v.facts.Source != version.Known:
		return ""
	case v.unfinished != "":
		return "no version exists yet; " + v.unfinished
	}
	return "there are no versions in the source"
}

func (v *view) onNode(of *versionView) status.OnNode {
	s := status.OnNode{
		Name: v.node.o.Name, ShardID: v.node.o.ShardID(),
		CreatedAt: seconds(of.known.created), ActiveAt: seconds(of.known.activeAt),
		Current: of.Input == v.facts.Current, State: status.State(of.status), Diverged: of.differs != "",
		Partitions: []int{}, Records: of.records, Unchanged: of.known.unchanged,
		Detail: v.detail(of), Gate: of.verdict.Checks,
	}
	f, unrecorded := &v.facts, ""
	if f.Unrecorded && of.Coverage == version.Replicated && of.Verdict == version.Passed && of.Name > f.Current.Name {
		unrecorded = "it is ready, and cannot be recorded in the local store as the version that is served: see the log"
	}
	s.Error = cmp.Or(v.divergence(of), of.Failure.Reason, unrecorded, of.wrong)
	if of.live != nil {
		info := of.live.Info
		s.Content = info.Code()
		s.LastModified, s.Partitioner = seconds(info.LastModified), info.Partitioner.String()
		for p, size := range of.sizes {
			if size > 0 {
				s.Partitions, s.PartitionBytes = append(s.Partitions, p), append(s.PartitionBytes, size)
				s.Bytes += size
			}
		}
	}
	loading, postponed := of.loading, of.postponed
	for _, other := range v.versions {
		if other.Name == of.Name && loading == nil {
			loading, postponed = other.loading, other.postponed
		}
	}
	if loading != nil {
		s.Progress = loadproc.Progress(loading.snapshot(), time.Now())
	}
	switch {
	case of.isKept(v):
		s.State = status.Kept
	case of.status == version.Prepared && of.Verdict == version.Held:
		s.State = status.Held
	case of.status == version.Building && postponed != "":
		s.State = status.Available
	case of.status == version.Available, of.status == version.Building, of.status == version.Prepared:
		s.State = status.Building
	}
	return s
}

// isKept reports whether a version was replaced by the current one, or by an older one that is pinned, and stays open.
func (v *versionView) isKept(shown *view) bool {
	return v.status == version.Prepared && v.Verdict != version.Held && (v.Name < shown.facts.Current.Name || !shown.facts.Pin.Allows(v.Name))
}

// detail adds to the state in a few words.
func (v *view) detail(of *versionView) string {
	switch {
	case of.Removal == version.Lingering:
		return "other nodes may still ask for it"
	case of.Removal == version.Closing:
		return "waiting for the requests in flight"
	case of.Removal != version.Staying:
		return "being deleted"
	case of.Failure.Waits && of.failure.Attempts > 0:
		return fmt.Sprintf("it has failed %s, and is tried again at %s or when its files change", human.Plural(of.failure.Attempts, "time"),
			of.failure.Next.UTC().Format(time.TimeOnly+"Z"))
	case of.loading != nil:
		return cmp.Or(of.postponed, stages[of.loading.stage.Load()])
	case of.status == version.Available && !v.node.joined.Load():
		return "the cluster has to be joined before it is served"
	case of.status == version.Available:
		return "on this node's disk, and the source cannot be read"
	case of.status != version.Prepared:
		return ""
	case of.Verdict == version.Held:
		return "held: " + of.verdict.Reason
	case of.isKept(v) && !v.facts.Pin.Allows(of.Name):
		return "the pin does not allow it"
	case of.isKept(v):
		return "for a rollback"
	case of.verdict.State == store.Pending:
		return "prepared, not judged yet: " + of.verdict.Reason
	}
	missing := version.Missing(of.live.Following, of.live.Held(), v.node.o.MinReplication)
	if len(missing) == 0 {
		return "prepared"
	}
	return "prepared, waiting for other nodes to hold " + human.Plural(len(missing), "partition") + ": " + human.Ranges(missing)
}

var stages = map[int32]string{
	starting:       "waiting for other nodes to be known",
	waitingForTurn: "waiting for other databases' loads",
	planning:       "looking at the files",
	copying:        "loading",
	fetching:       "copying from other nodes",
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

// problems describes the active versions whose files have changed, and those with something wrong.
func (v *view) problems() (problems []string) {
	for i := range v.versions {
		switch of := &v.versions[i]; {
		case of.differs != "":
			problems = append(problems, v.divergence(of))
		case of.wrong != "":
			problems = append(problems, of.wrong)
		case of.verdict.Skipped != "":
			problems = append(problems, fmt.Sprintf("the gate of %s judges version %s without some of its rules: %s", v.db, of.Name, of.verdict.Skipped))
		}
	}
	return problems
}

// wholeTimeout is how long a started node waits for other nodes with partitions that no node has yet,
// as when all nodes start together, before it is ready without them.
const wholeTimeout = 10 * time.Second

// waits returns what a db waits for.
func (v *view) waits() []status.Wait {
	current := v.facts.Current.Name
	var all []status.Wait
	w, loads := v.loadWait()
	if w.Blocks = v.atStart && current == "" && (v.served() || !v.tried && !v.away) || v.isBehind(); loads || w.Blocks {
		all = append(all, w)
	}
	if v.atStart && current != "" && !v.whole && !v.away && time.Since(v.node.admitted()) < wholeTimeout {
		all = append(all, status.Wait{For: status.WaitForNodes, DB: v.db, Version: current, Since: seconds(v.node.admitted()), Blocks: true,
			What: "nodes that hold partitions of " + v.db + " which no node has that is known yet"})
	}
	return all
}

// isBehind reports whether nothing is served because another node serves a newer version, and this one has not joined yet.
func (v *view) isBehind() bool {
	return !v.node.joined.Load() && v.facts.Current.Name == "" && v.facts.Taken.Name > v.facts.Before().Name
}

// loadWait returns what a db waits for to serve a version, or a newer one. loads reports whether there is one.
func (v *view) loadWait() (w status.Wait, loads bool) {
	w = status.Wait{For: status.WaitForLoad, DB: v.db, Since: seconds(v.node.admitted())}
	next := v.next()
	if v.isBehind() {
		w.For, w.Version = status.WaitForZooKeeper, v.facts.Taken.Name
		w.What = fmt.Sprintf("ZooKeeper, as another node serves version %s of %s, which is newer than what is here", w.Version, v.db)
		return w, true
	}
	if next == nil {
		if v.facts.Source != version.Known {
			w.For = status.WaitForSource
		}
		w.What = "a version of " + v.db + ": " + cmp.Or(v.problem(), "its versions to be listed")
		return w, false
	}
	w.Version, w.Since = next.Name, seconds(next.known.found)
	if next.loading == nil && next.status == version.Prepared {
		w.For = status.WaitForNodes
	}
	how := v.detail(next)
	if reason := next.Failure.Reason; reason != "" {
		how = strings.TrimPrefix(how+"; its last load has failed: "+reason, "; ")
	}
	w.What = fmt.Sprintf("version %s of %s: %s", w.Version, v.db, cmp.Or(how, "not begun"))
	return w, true
}

// next returns the version that the db waits for, the newest that is loaded, ready or to be tried again; nil if there is none. A version
// that the gate holds waits for people.
func (v *view) next() *versionView {
	current := v.facts.Current
	for i, e := range slices.Backward(v.versions) {
		if e.Input != current && e.Name >= current.Name && e.Removal == version.Staying && e.Verdict != version.Held && (e.Failure.Reason == "" || current.Name == "") {
			return &v.versions[i]
		}
	}
	return nil
}
