package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/load/loadproc"
	"sequins/observe/status"
	"sequins/version"
	"sequins/version/gate"
)

// A view is a snapshot of a db for the status. It is immutable, and the objects it points to are safe
// for concurrent use.
type view struct {
	current    content.Input
	serving    content.Content // what is served, or was before a restart
	served     bool            // it is served, or was before a restart
	tried      bool            // its versions were listed, and all have failed through their own fault
	whole      bool            // every partition of current has been on some node at least once
	versions   map[content.Input]versionView
	listed     bool // the source has complete versions of it
	read       bool // its versions were listed at least once
	pin        *status.Pin
	unfinished string    // the newest incomplete version, and the reason
	absent     time.Time // since when the source lacks it, as far as that was written; zero: it does not
}

type versionView struct {
	version.Entry
	record
	Status         version.Status
	differs        string           // how its files in the source differ from those that it was loaded from; "" if they do not
	wrong          string           // see db
	unrecorded     bool             // ready, but it cannot be recorded as the served one
	live           *version.Version // nil if not in the set
	verdict        gate.Verdict
	records, bytes int64
	loading        *loading // nil if not being loaded
}

// publish publishes the state of a db for Node.Status and Node.Ready.
func (d *db) publish() {
	s, before := &d.facts, d.facts.Before()
	d.keeper.seenWhole = d.keeper.seenWhole || d.keeper.isWhole()
	v := view{
		current: s.Current, serving: d.judge.servedContent(), served: s.Current.Name != "" || before.Name != "", listed: len(s.Listed) > 0,
		read: s.Source == version.Known, unfinished: d.lister.unfinished,
		versions: make(map[content.Input]versionView, len(s.Entries)), tried: d.lister.tried(), whole: d.keeper.seenWhole, pin: d.pinStatus(), absent: d.memory.state.Absent,
	}
	for _, e := range s.Entries {
		vv := versionView{Entry: e, record: *d.records[e.Input], Status: s.Status(e), loading: d.loads.running[e.Input], wrong: cmp.Or(d.lister.wrong[e.Input], d.lister.passedOver(e.Input)),
			differs: d.lister.last.Differs[e.Input], unrecorded: s.Unrecorded && e.Coverage == version.Replicated && e.Verdict == version.Passed && e.Name > s.Current.Name}
		if l := d.keeper.live[e.Input]; l != nil {
			vv.live, vv.verdict = l.v, l.judged.verdict
			vv.records, vv.bytes = l.size()
		}
		v.versions[e.Input] = vv
	}
	d.view.Store(&v)
}

// passingAttempts is how many failed attempts for a version count as a permanent failure, if the
// failures may be temporary.
const passingAttempts = 3

// exhaustedFor is how long the status shows that a connection was refused for want of a file descriptor.
const exhaustedFor = 5 * time.Minute

// Status implements server.Catalog.
func (n *Node) Status() status.Status {
	r := n.health.Report()
	s := status.Status{
		DBs:     make(map[string]status.DB),
		ShardID: n.o.ShardID(), Node: n.o.Name, Build: n.o.Build,
		StartedAt: seconds(n.started), Source: n.o.SourceName,
		SourceErrorSince: seconds(r.Since), RefreshedAt: seconds(r.Refreshed), Warnings: r.Warnings,
	}
	if r.Err != nil {
		s.SourceError = r.Err.Error()
	}
	if keys := n.restart.Load(); keys != nil {
		s.RestartKeys = *keys
	}
	if failed := n.reloadError.Load(); failed != nil {
		s.ReloadError, s.ReloadErrorSince = failed.reason, seconds(failed.at)
	}
	if at := n.accepted.Last(); time.Since(at) < exhaustedFor {
		s.ExhaustedAt = seconds(at)
	}
	if disk := n.o.Metrics.Process.Disk(); disk != nil {
		s.Disk = status.Disk{Bytes: disk.Size, Free: disk.Free}
	}
	s.Waiting = n.waits()
	if differences := n.differences.Load(); differences != nil {
		s.Differences = *differences
	}
	if n.o.Keys != nil {
		n.o.Keys(&s)
	}
	if n.o.Membership != nil {
		n.o.Membership(&s)
	}
	for name, d := range *n.catalog.Load() {
		db := d.status()
		if f, failing := r.DBs[name]; failing {
			db.Error = fmt.Sprintf("its versions cannot be listed since %s: %v", f.Since.UTC().Format(time.RFC3339), f.Err)
		}
		s.DBs[name] = db
	}
	s.Problems = slices.Concat(s.Problems, n.divergences())
	return s
}

func (d *db) status() status.DB {
	v := d.view.Load()
	s := status.DB{Versions: make(map[string]status.Version, len(v.versions)), Error: v.problem(), Pin: v.pin}
	n := d.node
	for name, in := range v.shown() {
		vv := v.versions[in]
		vs := status.Version{
			Path:              n.o.Source.Path(d.name, name),
			TargetReplication: n.o.Replication,
			Nodes:             map[string]status.OnNode{n.o.Name: d.nodeStatus(v, vv)},
		}
		if vv.live != nil {
			vs.NumPartitions = vv.live.Info().Partitions
			vs.Replicas = replicas(vv.live)
		}
		s.Versions[name] = vs
	}
	return s
}

// shown returns the input of each version that the status shows, by the version's name: the current
// one, otherwise the one that was found last.
func (v *view) shown() map[string]content.Input {
	shown := make(map[string]content.Input, len(v.versions))
	for in, each := range v.versions {
		other, found := shown[in.Name]
		if !found || in == v.current || other != v.current && each.found.After(v.versions[other].found) {
			shown[in.Name] = in
		}
	}
	return shown
}

// replicas returns the number of nodes that hold each partition of a version.
func replicas(v *version.Version) []int {
	held, following := v.Held(), v.Info().Following
	all := make([]int, len(held))
	for p, here := range held {
		all[p] = following.Replicas(p)
		if here {
			all[p]++
		}
	}
	return all
}

// problem returns why a db has nothing to serve; "" if it may have soon.
func (v *view) problem() string {
	switch {
	case v.current.Name != "" || v.listed || !v.read:
		return ""
	case v.unfinished != "":
		return "no version exists yet; " + v.unfinished
	}
	return "there are no versions in the source"
}

func (d *db) nodeStatus(shown *view, v versionView) status.OnNode {
	s := status.OnNode{
		Name: d.node.o.Name, ShardID: d.node.o.ShardID(),
		CreatedAt: seconds(v.created), ActiveAt: seconds(v.activeAt),
		Current: v.Input == shown.current, State: states[v.Status], Error: v.Failure.Reason,
		Partitions: []int{}, Records: v.records, Bytes: v.bytes, Unchanged: v.unchanged,
	}
	if v.live != nil {
		info := v.live.Info()
		s.Content = info.Code()
		s.LastModified, s.Partitioner = seconds(info.LastModified), info.Partitioner.String()
		for p, held := range v.live.Held() {
			if held {
				s.Partitions = append(s.Partitions, p)
			}
		}
	}
	if v.unrecorded && s.Error == "" {
		s.Error = "it is ready, and cannot be recorded in the local store as the version that is served: see the log"
	}
	if s.Error == "" {
		s.Error = v.wrong
	}
	loading := v.loading
	if s.Diverged = v.differs != ""; s.Diverged {
		s.Error = d.divergence(shown, v)
	}
	for in, other := range shown.versions {
		if in.Name == v.Name && loading == nil {
			loading = other.loading
		}
	}
	if loading != nil {
		s.Progress = loadproc.Progress(loading.snapshot(), time.Now())
	}
	if v.Verdict == version.Held && v.Status == version.Prepared {
		s.State = status.Held
	}
	if v.isKept(shown) {
		s.State = status.Kept
	}
	if loading != nil && v.Status == version.Building && loading.turn.Waits(time.Now()) != "" {
		s.State = status.Available
	}
	s.Detail, s.Gate = d.detail(shown, v), v.verdict.Checks
	return s
}

// isKept reports whether a version was replaced by the current one, and stays for a rollback.
func (v versionView) isKept(shown *view) bool {
	return v.Status == version.Prepared && v.Verdict != version.Held && v.Name < shown.current.Name
}

// states maps the states to those of the original sequins.
var states = map[version.Status]status.State{
	version.Available: status.Building,
	version.Building:  status.Building,
	version.Prepared:  status.Building,
	version.Active:    status.Active,
	version.Removing:  status.Removing,
	version.Error:     status.Error,
}

// detail adds to the state in a few words.
func (d *db) detail(shown *view, v versionView) string {
	switch {
	case v.Removal == version.Lingering:
		return "other nodes may still ask for it"
	case v.Removal == version.Closing:
		return "waiting for the requests in flight"
	case v.Removal != version.Staying:
		return "being deleted"
	case v.Failure.Waits && v.retries.failed > 0:
		return v.retries.String()
	case v.loading != nil:
		return cmp.Or(v.loading.turn.Waits(time.Now()), stages[v.loading.stage.Load()])
	case v.Status == version.Available:
		return "on this node's disk, and the source cannot be read"
	case v.Verdict == version.Held && v.Status == version.Prepared:
		return "held: " + v.verdict.Reason
	case v.isKept(shown):
		return "for a rollback"
	case v.Status == version.Prepared && v.verdict.State == gate.Pending:
		return "prepared, not judged yet: " + v.verdict.Reason
	case v.Status == version.Prepared && v.live != nil:
		missing := v.live.Info().Following.Missing(v.live.Held(), d.node.o.MinReplication)
		if len(missing) == 0 {
			return "prepared"
		}
		return "prepared, waiting for other nodes to hold " + human.Plural(len(missing), "partition") + ": " + human.Ranges(missing)
	}
	return ""
}

var stages = map[int32]string{
	starting:       "waiting for other nodes to be known",
	waitingForTurn: "waiting for other databases' loads",
	planning:       "looking at the files",
	copying:        "loading",
	fetching:       "copying from other nodes what they load",
}

// seconds rounds a time to seconds, for the status JSON.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// MayExist implements server.Catalog. A node that was never able to read the source cannot know that a
// db does not exist, and another node may have found the db earlier.
func (n *Node) MayExist(db []byte) bool {
	return !n.listed.Load() || n.o.Cluster.Knows(string(db))
}

// wholeTimeout is how long a started node waits for other nodes with partitions that no node has yet,
// as when all nodes start together, before it is ready without them.
const wholeTimeout = 10 * time.Second

// Events implements server.Catalog.
func (n *Node) Events(db string) []status.Event {
	if db == "" {
		return n.o.Events.Last(shownEvents)
	}
	return n.o.Events.OfDB(db)
}

// shownEvents is the number of events of the node in its status.
const shownEvents = 50

// Ready implements server.Catalog.
func (n *Node) Ready(db string) (bool, string) {
	if db != "" && n.admitted.Load() {
		return readyFor((*n.catalog.Load())[db], db)
	}
	return unready(n.waits(), time.Now())
}
